/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rxe with peer memory: the functions that `adapt` makes rxe's files call.
 */
#ifndef RXE_PEER_H
#define RXE_PEER_H

#include <linux/srcu.h>

#include "compat.h"

/* Functions that access the memory of an MR hold this lock for reading. */
extern struct srcu_struct rxe_peer_srcu;

/*
 * Tells whether the MR's memory was taken away. Callers hold rxe_peer_srcu, and call this function
 * before they access the memory.
 */
static inline bool rxe_peer_gone(const struct rxe_mr *mr)
{
	return mr && READ_ONCE(mr->peer_revoked);
}

/* rxe's files call these two functions instead of those that pin and unpin a user's memory. */
struct ib_umem *rxe_peer_umem_get(struct ib_device *device, u64 start, u64 length,
				  int access);
void rxe_peer_umem_release(struct ib_umem *umem);

/* Makes the last step of a registration. After a failure, the MR releases everything. */
int rxe_peer_activate(struct rxe_mr *mr);

/* Makes the first step of a deregistration, when the deregistration can no longer fail. */
void rxe_peer_dereg(struct rxe_mr *mr);

#endif
