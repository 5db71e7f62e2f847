// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The closed flavour of the driver: a module with NVIDIA's licence that exports the functions
 * for clients, so that the kernel treats it as proprietary. The simulation is in nvidia_core.ko.
 */
#include <linux/module.h>

#include "../compat.h"
#include <nv-p2p.h>

#define HANDED_ON(name, arguments, values)		\
typeof(nvidia_p2p_##name) lab_p2p_##name;		\
int nvidia_p2p_##name arguments				\
{							\
	return lab_p2p_##name values;			\
}							\
EXPORT_SYMBOL(nvidia_p2p_##name)

HANDED_ON(get_pages,
	  (u64 token, u32 space, u64 va, u64 length, struct nvidia_p2p_page_table **table,
	   void (*free_callback)(void *data), void *data),
	  (token, space, va, length, table, free_callback, data));
HANDED_ON(put_pages, (u64 token, u32 space, u64 va, struct nvidia_p2p_page_table *table),
	  (token, space, va, table));
HANDED_ON(dma_map_pages,
	  (struct pci_dev *peer, struct nvidia_p2p_page_table *table,
	   struct nvidia_p2p_dma_mapping **mapping),
	  (peer, table, mapping));
HANDED_ON(dma_unmap_pages,
	  (struct pci_dev *peer, struct nvidia_p2p_page_table *table,
	   struct nvidia_p2p_dma_mapping *mapping),
	  (peer, table, mapping));
HANDED_ON(free_page_table, (struct nvidia_p2p_page_table *table), (table));
HANDED_ON(free_dma_mapping, (struct nvidia_p2p_dma_mapping *mapping), (mapping));

HANDED_ON(get_pages_persistent,
	  (u64 va, u64 length, struct nvidia_p2p_page_table **table, u32 flags),
	  (va, length, table, flags));
HANDED_ON(put_pages_persistent, (u64 va, struct nvidia_p2p_page_table *table, u32 flags),
	  (va, table, flags));

MODULE_DESCRIPTION("Simulated NVIDIA driver, closed flavour");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("NVIDIA");
MODULE_VERSION(NV_VERSION);
