/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the doubles and their client share. */
#ifndef DOUBLES_H
#define DOUBLES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "events.h"

#define GPU_SIZE	(16ul << 20)
/*
 * The memory that the client allocates: GPU memory with a context, memory of the second GPU's pool,
 * which has no context, and memory of the host that CUDA knows. The last is a wrong address.
 */
#define GPU_MEMORY	0x302000000ul
#define GPU_POOL	0x303000000ul
#define PINNED_HOST	0x304000000ul
#define NO_MEMORY	0x1000ul

/* The descriptor of the RDMA device, which is no open file, its driver (mlx5) and the domain. */
#define DEVICE_FD	999
#define DRIVER_ID	1
#define PD_HANDLE	55

#endif
