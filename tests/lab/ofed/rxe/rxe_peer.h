/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rxe with peer memory. `adapt` renames some of rxe's functions to
 * rxe_stock_*; those of the old names are in rxe_peer.c and go through these.
 */
#ifndef RXE_PEER_H
#define RXE_PEER_H

int rxe_stock_mr_init_user(struct rxe_dev *rxe, u64 start, u64 length,
			   int access, struct rxe_mr *mr);
int rxe_stock_mr_copy(struct rxe_mr *mr, u64 iova, void *addr,
		      unsigned int length, enum rxe_mr_copy_dir dir);
int rxe_stock_flush_pmem_iova(struct rxe_mr *mr, u64 start, unsigned int length);
enum resp_states rxe_stock_mr_do_atomic_op(struct rxe_mr *mr, u64 iova, int opcode,
					   u64 compare, u64 swap_add, u64 *orig_val);
enum resp_states rxe_stock_mr_do_atomic_write(struct rxe_mr *mr, u64 iova, u64 value);

/* Called where rxe's own files pin and unpin the memory of a user's MR. */
struct ib_umem *rxe_peer_umem_get(struct rxe_dev *rxe, u64 start, u64 length,
				  int access);
void rxe_peer_umem_release(struct ib_umem *umem);

/* The first step of a deregistration that can no longer fail. */
void rxe_peer_dereg(struct rxe_mr *mr);

#endif
