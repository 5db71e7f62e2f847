// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The proprietary flavour of NVIDIA's driver, as far as the kernel looks at it
 * when another module is loaded: what it exports, under which licence.
 */
#include <linux/errno.h>
#include <linux/module.h>

int nvidia_p2p_get_pages(void);
int nvidia_p2p_get_pages(void)
{
	return -EINVAL;
}
EXPORT_SYMBOL(nvidia_p2p_get_pages);

MODULE_DESCRIPTION("Simulated NVIDIA driver of the proprietary flavour");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("Proprietary");
MODULE_VERSION("590");
