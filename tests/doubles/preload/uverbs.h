/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of the RDMA core, from the kernel's headers. The command of ibv_reg_mr_ex() is newer than
 * the headers of some systems.
 */
#ifndef UVERBS_H
#define UVERBS_H

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

enum { METHOD_REG_MR = 5 };

/* UVERBS_ATTR_REG_MR_... */
enum {
	REG_MR_HANDLE,
	REG_MR_PD_HANDLE,
	REG_MR_DMA_HANDLE,
	REG_MR_IOVA,
	REG_MR_ADDR,
	REG_MR_LENGTH,
	REG_MR_ACCESS_FLAGS,
	REG_MR_FD,
	REG_MR_FD_OFFSET,
	REG_MR_RESP_LKEY,
	REG_MR_RESP_RKEY,
};

/* A command with room for its attributes. */
struct command {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[12];
};

#endif
