/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the doubles and their client share. */
#ifndef DOUBLES_H
#define DOUBLES_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_SIZE	(16ul << 20)
/*
 * GPU memory with a context, GPU memory of a pool, which has no context, memory of the host that
 * CUDA knows, and a wrong address.
 */
#define GPU_MEMORY	0x7e0000000000ul
#define GPU_POOL	0x7e1000000000ul
#define PINNED_HOST	0x7e2000000000ul
#define NO_MEMORY	0x1000ul

/* The descriptor of the RDMA device, which is no open file, its driver (mlx5) and the domain. */
#define DEVICE_FD	999
#define DRIVER_ID	1
#define PD_HANDLE	55

/*
 * A file that stands for /dev/nvidia-uvm, which CUDA opens when it is initialized. It has the name of a
 * device, and is removed at once.
 */
#define UVM	"/dev/shm/nvidia-uvm-double"

static inline bool in_gpu(uint64_t start, uint64_t base, size_t length)
{
	return start >= base && start - base + length <= GPU_SIZE;
}

static int events = -1;

/* Opens the file when the process starts, because a test later uses up all descriptors. */
__attribute__((constructor)) static void open_events(void)
{
	const char *path = getenv("EVENTS");

	if (path)
		events = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
}

/* Writes a line to the file $EVENTS. */
static inline void event(const char *format, ...)
{
	va_list arguments;

	if (events < 0)
		return;
	va_start(arguments, format);
	vdprintf(events, format, arguments);
	va_end(arguments);
}

/* Returns the number in $NAME, or 0. */
static inline int told(const char *name)
{
	const char *value = getenv(name);

	return value ? atoi(value) : 0;
}

#endif
