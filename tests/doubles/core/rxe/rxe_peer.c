// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Adds peer memory to rxe, so that the memory of an MR can be taken away.
 *
 * rxe has no DMA. The CPU copies from and to the pages of the MR. A copy runs in an SRCU read
 * section, and first checks mr->peer_revoked (`adapt` adds this check to each function that
 * copies). A revocation sets mr->peer_revoked, and then waits for the copies that are running.
 */
#include <linux/srcu.h>
#include <rdma/ib_umem.h>

#include "rxe.h"
#include "peer_driver.h"

DEFINE_SRCU(rxe_peer_srcu);

static void rxe_peer_revoke(struct rxe_mr *mr)
{
	WRITE_ONCE(mr->peer_revoked, true);
	synchronize_srcu_expedited(&rxe_peer_srcu);
}

static void rxe_peer_invalidate(struct ib_umem *umem, void *priv)
{
	rxe_peer_revoke(priv);
}

struct ib_umem *rxe_peer_umem_get(struct ib_device *device, u64 start, u64 length,
				  int access)
{
	return ib_umem_get_peer(device, start, length, access, IB_PEER_MEM_INVAL_SUPP);
}

void rxe_peer_umem_release(struct ib_umem *umem)
{
	ib_umem_stop_invalidation_notifier(umem);
	ib_umem_release(umem);
}

int rxe_peer_activate(struct rxe_mr *mr)
{
	int err;

	if (!ib_umem_is_peer(mr->umem))
		return 0;
	mr->is_peer = true;
	err = ib_umem_peer_driver_step(mr->umem);
	if (err) {
		/* The umem itself is released with the MR. */
		ib_umem_stop_invalidation_notifier(mr->umem);
		return err;
	}
	return ib_umem_activate_invalidation_notifier(mr->umem, rxe_peer_invalidate, mr);
}

void rxe_peer_dereg(struct rxe_mr *mr)
{
	if (!mr->is_peer)
		return;
	rxe_peer_revoke(mr);
	ib_umem_stop_invalidation_notifier(mr->umem);
}
