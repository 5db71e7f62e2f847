// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tells Rust which version of the RDMA core's header peer_mem.h the module was compiled with.
 */
#include <linux/stddef.h>
#include <linux/types.h>

#include "compat.h"
#include "nvpm.h"

/* abi.rs asserts the same sizes and offsets. */
static_assert(offsetof(struct peer_memory_client, acquire) == 80);
static_assert(offsetof(struct peer_memory_client, release) == 128);
static_assert(sizeof(struct nvpm_client) == 152);

#ifdef NVPM_CORE_EX
const u32 nvpm_core_flags = PEER_MEM_INVALIDATE_UNMAPS;
const char *const nvpm_core_api = "MLNX_OFED 5.4 and later, DOCA-OFED, distributions' kernels";

static_assert(sizeof(struct peer_memory_client_ex) == sizeof(struct nvpm_client));
static_assert(offsetof(struct peer_memory_client_ex, ex_size) ==
	      offsetof(struct nvpm_client, ex_size));
static_assert(offsetof(struct peer_memory_client_ex, flags) ==
	      offsetof(struct nvpm_client, flags));
#elif defined(NVPM_CORE_PRIVATE_DATA)
const u32 nvpm_core_flags;
const char *const nvpm_core_api = "MLNX_OFED 4.1 to 5.0 (4.9 LTS)";
#else
const u32 nvpm_core_flags;
const char *const nvpm_core_api = "MLNX_OFED 4.0, or 5.1 to 5.4-2";
#endif
