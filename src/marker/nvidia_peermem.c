// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A module that does nothing but be there. Some programs take GPUDirect RDMA
 * for available only if a module of the name nvidia_peermem is loaded; this
 * one can be, and only while nv_peer_mem is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "marker.h"

static int __init marker_init(void)
{
	pr_info("not NVIDIA's module, but a sign that nv_peer_mem %s is loaded\n",
		nvpm_version);
	return 0;
}

static void __exit marker_exit(void)
{
}

module_init(marker_init);
module_exit(marker_exit);

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("Says under the name nvidia_peermem that nv_peer_mem is loaded");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(NVPM_VERSION);
