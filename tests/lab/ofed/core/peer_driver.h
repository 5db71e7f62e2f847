/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Peer memory for the kernel's files: for RDMA drivers, and for the lines that `adapt` puts into
 * umem.c and device.c.
 */
#ifndef PEER_DRIVER_H
#define PEER_DRIVER_H

#include <linux/types.h>

struct ib_device;
struct ib_umem;

/* The driver can stop using a region at any time. */
#define IB_PEER_MEM_INVAL_SUPP BIT(1)

/* Takes the umem's memory away from the device; may sleep. */
typedef void (*umem_invalidate_func_t)(struct ib_umem *umem, void *priv);

/* Does the same as ib_umem_get_va(), but asks the peers if the CPU has no pages. */
struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access, unsigned long flags);

bool ib_umem_is_peer(struct ib_umem *umem);

/*
 * Makes the last step of a registration: from here on @func may be called. A driver that
 * fails between ib_umem_get_peer() and this call calls stop instead. In G2 this call fails
 * if the memory was freed in the meantime.
 */
int ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					   umem_invalidate_func_t func,
					   void *priv);

/*
 * Makes the first step of a deregistration, when the device no longer uses the memory: @func
 * is not called afterwards. ib_umem_release() follows. This call and activate do nothing for
 * a umem without peer.
 */
void ib_umem_stop_invalidation_notifier(struct ib_umem *umem);

/* Returns an errno if a test wants this registration to fail in the driver, else 0. */
int ib_umem_peer_driver_step(struct ib_umem *umem);

/*
 * Offers a range to the peers after pinning has failed with @err. Nothing is pinned, and the
 * range is still charged to the process. Returns zero if a peer took the range over.
 */
int ib_peer_umem_get(struct ib_umem *umem, int access, int err);

/* Releases the umem if it is a peer's. Returns whether it was. */
bool ib_peer_umem_release(struct ib_umem *umem);

void ib_peer_init(void);
void ib_peer_exit(void);

#endif
