/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA device and its registrations, which transfers use. */
#ifndef HARDWARE_VERBS_H
#define HARDWARE_VERBS_H

#include <infiniband/verbs.h>

#include "client.h"

#define REGIONS		8192
#define RIGHTS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

extern struct ibv_mr *regions[REGIONS];
/* The address of each region for transfers. For a dma-buf, the library does not keep it. */
extern uint64_t bases[REGIONS];
/* The options of the program choose device and port. */
extern const char *wanted_device;
extern int port, gid_index;
extern struct ibv_context *context;
extern struct ibv_pd *pd;
extern struct ibv_port_attr attributes;

void open_verbs(void);
struct ibv_mr **region_of(char **words, int at);

#endif
