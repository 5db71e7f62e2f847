/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Peer memory as the kernel's files see it: an RDMA driver, and the lines that
 * `adapt` puts into umem.c and device.c.
 */
#ifndef PEER_DRIVER_H
#define PEER_DRIVER_H

#include <linux/types.h>

struct ib_device;
struct ib_umem;

/* The driver can take its hands off a region at any time. */
#define IB_PEER_MEM_INVAL_SUPP BIT(1)

/* Takes the umem's memory away from the device; may sleep. */
typedef void (*umem_invalidate_func_t)(struct ib_umem *umem, void *priv);

/* Like ib_umem_get_va(), but asks the peers if the CPU has no pages. */
struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access, unsigned long flags);

bool ib_umem_is_peer(struct ib_umem *umem);

/*
 * The last step of a registration: from here on @func may be called. A driver
 * that fails between ib_umem_get_peer() and here calls stop instead. In G2 this
 * itself fails, if the memory has gone meanwhile.
 */
int ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					   umem_invalidate_func_t func,
					   void *priv);

/*
 * The first step of a deregistration, when the device no longer uses the
 * memory: @func is not called after it. Then ib_umem_release(). Both this and
 * activate do nothing for a umem without peer.
 */
void ib_umem_stop_invalidation_notifier(struct ib_umem *umem);

/* Whether the lab wants this registration to fail in the driver: an errno. */
int ib_umem_peer_driver_step(struct ib_umem *umem);

/*
 * Pinning failed with @err, nothing is pinned, the range is still charged to
 * the process. Returns zero if a peer took the range over.
 */
int ib_peer_umem_get(struct ib_umem *umem, int access, int err);

/* Whether the umem was a peer's, and is gone now. */
bool ib_peer_umem_release(struct ib_umem *umem);

void ib_peer_init(void);
void ib_peer_exit(void);

#endif
