/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rxe with peer memory: what the lines call that `adapt` puts into rxe's files.
 */
#ifndef RXE_PEER_H
#define RXE_PEER_H

#include <linux/srcu.h>

#include "compat.h"

/* Held for reading by everything that works on the memory of an MR. */
extern struct srcu_struct rxe_peer_srcu;

/* Asked under it, and first: the MR's memory is not to be touched any more. */
static inline bool rxe_peer_gone(const struct rxe_mr *mr)
{
	return mr && READ_ONCE(mr->peer_revoked);
}

/* Called where rxe's own files pin and unpin the memory of a user's MR. */
struct ib_umem *rxe_peer_umem_get(struct ib_device *device, u64 start, u64 length,
				  int access);
void rxe_peer_umem_release(struct ib_umem *umem);

/* The last step of a registration. What fails here is released with the MR. */
int rxe_peer_activate(struct rxe_mr *mr);

/* The first step of a deregistration that can no longer fail. */
void rxe_peer_dereg(struct rxe_mr *mr);

#endif
