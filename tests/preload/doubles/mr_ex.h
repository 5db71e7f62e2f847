/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The structure of ibv_reg_mr_ex() in rdma-core 59, for headers that are older. */
#ifndef MR_EX_H
#define MR_EX_H

struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
};

enum { MASK_IOVA = 1, MASK_ADDR = 2, MASK_FD = 4, MASK_FD_OFFSET = 8 };

#endif
