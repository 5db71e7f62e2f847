// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The marker is a module that does nothing. Some programs use GPUDirect RDMA only if a module
 * called nvidia_peermem is loaded. The marker has that name, and can be loaded only while
 * nv_peer_mem is loaded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "marker.h"

static int __init marker_init(void)
{
	pr_info("this is not NVIDIA's module: it shows programs that nv_peer_mem %s is loaded\n",
		nvpm_version);
	return 0;
}

static void __exit marker_exit(void)
{
}

module_init(marker_init);
module_exit(marker_exit);

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("Marker called nvidia_peermem: shows programs that nv_peer_mem is loaded");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(NVPM_VERSION);
