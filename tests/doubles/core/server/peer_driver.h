/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The functions for peer memory that RDMA drivers call, and that the lines call that `adapt` adds
 * to umem.c and device.c.
 */
#ifndef PEER_DRIVER_H
#define PEER_DRIVER_H

#include <linux/types.h>

struct ib_device;
struct ib_umem;

/* The driver can stop using a region at any time. */
#define IB_PEER_MEM_INVAL_SUPP BIT(1)

/*
 * Access flags that offer memory to the peers, whichever function of the core pins the memory. The
 * first offers the memory to clients that never invalidate, and both together to all clients.
 * ib_umem_get_peer() sets these flags itself. Users of verbs cannot set these flags.
 */
#define PEER_ACCESS_ALLOW ((int)BIT(30))
#define PEER_ACCESS_INVAL ((int)BIT(31))

/* The type of a driver's function that makes the device stop using the umem's memory. May sleep. */
typedef void (*umem_invalidate_func_t)(struct ib_umem *umem, void *priv);

/*
 * Does the same as ib_umem_get_va(), but also asks the peers if the memory has no pages of the CPU.
 */
struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access, unsigned long flags);

bool ib_umem_is_peer(struct ib_umem *umem);

/*
 * Makes the last step of a registration. After this call, @func may be called at any time. A driver
 * that fails between ib_umem_get_peer() and this call must call
 * ib_umem_stop_invalidation_notifier() instead. In G2 this call fails if the memory was freed in
 * the meantime.
 */
int ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					   umem_invalidate_func_t func,
					   void *priv);

/*
 * Makes the first step of a deregistration, when the device no longer uses the memory. After this
 * call, @func is not called any more. The driver must then call ib_umem_release(). For a umem
 * without a peer, this function and ib_umem_activate_invalidation_notifier() do nothing.
 */
void ib_umem_stop_invalidation_notifier(struct ib_umem *umem);

/*
 * Returns a negative error number if a test has requested that this registration fails in the
 * driver, and otherwise 0.
 */
int ib_umem_peer_driver_step(struct ib_umem *umem);

/*
 * Asks the peers whether they claim a range, after pinning has failed with @err. When this function
 * is called, nothing is pinned, and the range is still charged to the process. Returns zero if a
 * peer has claimed the range.
 */
int ib_peer_umem_get(struct ib_umem *umem, int access, int err);

/* Releases the umem if its memory belongs to a peer. Returns whether that is so. */
bool ib_peer_umem_release(struct ib_umem *umem);

/* Tells whether the best page size is found as if no two entries of a list were neighbours. */
bool ib_peer_separate_entries(void);

void ib_peer_init(void);
void ib_peer_exit(void);

#endif
