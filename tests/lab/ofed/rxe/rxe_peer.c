// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rxe with peer memory: an MR whose memory can be taken away.
 *
 * rxe's "DMA" is the CPU copying through the pages of the MR. Copies run in an
 * SRCU read section and look at mr->peer_revoked first; whoever revokes peer
 * memory sets that and waits for the copies under way.
 */
#include <linux/srcu.h>
#include <rdma/ib_umem.h>

#include "rxe.h"
#include "peer_driver.h"

DEFINE_STATIC_SRCU(rxe_peer_srcu);

static void rxe_peer_revoke(struct rxe_mr *mr)
{
	WRITE_ONCE(mr->peer_revoked, true);
	synchronize_srcu_expedited(&rxe_peer_srcu);
}

static void rxe_peer_invalidate(struct ib_umem *umem, void *priv)
{
	rxe_peer_revoke(priv);
}

struct ib_umem *rxe_peer_umem_get(struct rxe_dev *rxe, u64 start, u64 length,
				  int access)
{
	return ib_umem_get_peer(&rxe->ib_dev, start, length, access,
				IB_PEER_MEM_INVAL_SUPP);
}

void rxe_peer_umem_release(struct ib_umem *umem)
{
	ib_umem_stop_invalidation_notifier(umem);
	ib_umem_release(umem);
}

int rxe_mr_init_user(struct rxe_dev *rxe, u64 start, u64 length, int access,
		     struct rxe_mr *mr)
{
	int err = rxe_stock_mr_init_user(rxe, start, length, access, mr);

	if (err || !ib_umem_is_peer(mr->umem))
		return err;
	mr->is_peer = true;
	err = ib_umem_peer_driver_step(mr->umem);
	if (err) {
		/* The umem itself goes with the MR. */
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

static bool rxe_peer_gone(const struct rxe_mr *mr)
{
	return mr && READ_ONCE(mr->peer_revoked);
}

int rxe_mr_copy(struct rxe_mr *mr, u64 iova, void *addr, unsigned int length,
		enum rxe_mr_copy_dir dir)
{
	guard(srcu)(&rxe_peer_srcu);
	return rxe_peer_gone(mr) ? -EFAULT : rxe_stock_mr_copy(mr, iova, addr, length, dir);
}

int rxe_flush_pmem_iova(struct rxe_mr *mr, u64 iova, unsigned int length)
{
	guard(srcu)(&rxe_peer_srcu);
	return rxe_peer_gone(mr) ? -EFAULT : rxe_stock_flush_pmem_iova(mr, iova, length);
}

enum resp_states rxe_mr_do_atomic_op(struct rxe_mr *mr, u64 iova, int opcode,
				     u64 compare, u64 swap_add, u64 *orig_val)
{
	guard(srcu)(&rxe_peer_srcu);
	if (rxe_peer_gone(mr))
		return RESPST_ERR_RKEY_VIOLATION;
	return rxe_stock_mr_do_atomic_op(mr, iova, opcode, compare, swap_add, orig_val);
}

enum resp_states rxe_mr_do_atomic_write(struct rxe_mr *mr, u64 iova, u64 value)
{
	guard(srcu)(&rxe_peer_srcu);
	return rxe_peer_gone(mr) ? RESPST_ERR_RKEY_VIOLATION :
				   rxe_stock_mr_do_atomic_write(mr, iova, value);
}
