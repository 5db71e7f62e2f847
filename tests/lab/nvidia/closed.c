// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The closed flavour of the driver, as the kernel and a client see it: a module of
 * NVIDIA's licence that exports what a client uses. The simulation behind it
 * (nvidia_core.ko) must see who called: these are jumps, which the build checks.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "../compat.h"
#include <nv-p2p.h>

typeof(nvidia_p2p_get_pages) lab_p2p_get_pages;
typeof(nvidia_p2p_put_pages) lab_p2p_put_pages;
typeof(nvidia_p2p_dma_map_pages) lab_p2p_dma_map_pages;
typeof(nvidia_p2p_dma_unmap_pages) lab_p2p_dma_unmap_pages;
typeof(nvidia_p2p_free_page_table) lab_p2p_free_page_table;
typeof(nvidia_p2p_free_dma_mapping) lab_p2p_free_dma_mapping;

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	return lab_p2p_get_pages(p2p_token, va_space, virtual_address, length,
				 page_table, free_callback, data);
}
EXPORT_SYMBOL(nvidia_p2p_get_pages);

int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	return lab_p2p_put_pages(p2p_token, va_space, virtual_address,
				 page_table);
}
EXPORT_SYMBOL(nvidia_p2p_put_pages);

#ifdef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
typeof(nvidia_p2p_get_pages_persistent) lab_p2p_get_pages_persistent;
typeof(nvidia_p2p_put_pages_persistent) lab_p2p_put_pages_persistent;

int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags)
{
	return lab_p2p_get_pages_persistent(virtual_address, length,
					    page_table, flags);
}
EXPORT_SYMBOL(nvidia_p2p_get_pages_persistent);

int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags)
{
	return lab_p2p_put_pages_persistent(virtual_address, page_table, flags);
}
EXPORT_SYMBOL(nvidia_p2p_put_pages_persistent);
#else
/* A variable: clients look whether it is there. */
int nvidia_p2p_cap_persistent_pages = 1;
EXPORT_SYMBOL(nvidia_p2p_cap_persistent_pages);
#endif

int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping)
{
	return lab_p2p_dma_map_pages(peer, page_table, dma_mapping);
}
EXPORT_SYMBOL(nvidia_p2p_dma_map_pages);

int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping)
{
	return lab_p2p_dma_unmap_pages(peer, page_table, dma_mapping);
}
EXPORT_SYMBOL(nvidia_p2p_dma_unmap_pages);

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	return lab_p2p_free_page_table(page_table);
}
EXPORT_SYMBOL(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	return lab_p2p_free_dma_mapping(dma_mapping);
}
EXPORT_SYMBOL(nvidia_p2p_free_dma_mapping);

MODULE_DESCRIPTION("Simulated NVIDIA driver, closed flavour");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("NVIDIA");
MODULE_VERSION(NV_VERSION);
