// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A double of a module of NVIDIA's driver. It does nothing but use the module nvidia. */
#include <linux/module.h>

#include "nv-p2p.h"

/* The address makes this module depend on nvidia. */
static void *const uses_nvidia = &nvidia_p2p_get_pages;

static int __init double_init(void)
{
	return uses_nvidia ? 0 : -ENODEV;
}

static void __exit double_exit(void)
{
}

module_init(double_init);
module_exit(double_exit);

MODULE_DESCRIPTION("Double of a module above nvidia");
MODULE_LICENSE("Dual MIT/GPL");
