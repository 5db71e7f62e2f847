// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions for Rust that read the NVIDIA driver's objects and call the driver. They support all
 * versions of the objects that this module knows.
 */
#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/pfn.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include <nv-p2p.h>

#include "compat.h"
#include "nvpm.h"

#ifndef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
#error "nv_peer_mem needs the NVIDIA driver 535 or later"
#endif

/*
 * This file supports only major versions below 3, because a new major version may have other
 * layouts.
 */
#if NVIDIA_P2P_PAGE_TABLE_VERSION >= 0x00030000 || NVIDIA_P2P_DMA_MAPPING_VERSION >= 0x00030000
#error "this NVIDIA driver is newer than this version of nv_peer_mem, which does not know its structures: install a newer nv_peer_mem"
#endif

/* abi.rs asserts the same sizes and offsets. */
static_assert(offsetof(struct nvidia_p2p_page_table, page_size) == 4);
static_assert(offsetof(struct nvidia_p2p_page_table, pages) == 8);
static_assert(offsetof(struct nvidia_p2p_page_table, entries) == 16);
static_assert(sizeof(struct nvidia_p2p_page) == 32);
static_assert(sizeof(struct nvidia_p2p_dma_mapping) == 40);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, entries) == 8);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, dma_addresses) == 16);

int nvpm_get_pages_persistent(u64 addr, u64 len, struct nvidia_p2p_page_table **table)
{
	return nvidia_p2p_get_pages_persistent(addr, len, table, 0);
}

int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table)
{
	return nvidia_p2p_put_pages_persistent(addr, table, 0);
}

/*
 * Version 1.2, which drivers have had since 535, added the UUID. Version 2.0 only appended the
 * flags, so all other fields that this module reads are at the same place in both versions.
 */
bool nvpm_page_table_known(const struct nvidia_p2p_page_table *table)
{
	return table->version >= 0x00010002 && table->version < 0x00030000;
}

bool nvpm_dma_mapping_known(const struct nvidia_p2p_dma_mapping *mapping)
{
	/*
	 * The header's macro is not used, because it compares with the version of the header, which
	 * may differ from the version of the loaded driver.
	 */
	return mapping->version >= 0x00020003 && mapping->version < 0x00030000;
}

const u8 *nvpm_page_table_uuid(const struct nvidia_p2p_page_table *table)
{
	return nvpm_page_table_known(table) ? table->gpu_uuid : NULL;
}

/*
 * The flags of version 2.0 are read at this offset, because an older header does not declare them.
 */
#define NVPM_PAGE_TABLE_FLAGS 32
#define NVPM_PAGE_TABLE_CACHEABLE BIT(0)

/* Tells whether the physical address is in a BAR of a PCI device. */
static bool nvpm_is_bar(u64 phys)
{
	struct pci_dev *pci = NULL;
	int bar;

	while ((pci = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, pci)))
		for (bar = 0; bar <= PCI_STD_RESOURCE_END; bar++)
			if (pci_resource_flags(pci, bar) & IORESOURCE_MEM &&
			    phys >= pci_resource_start(pci, bar) &&
			    phys <= pci_resource_end(pci, bar)) {
				pci_dev_put(pci);
				return true;
			}
	return false;
}

int nvpm_page_table_coherent(const struct nvidia_p2p_page_table *table)
{
	struct page *page;
	u64 phys;

	if (table->version >> 16 >= 2)
		return !!(*(const u32 *)((const u8 *)table + NVPM_PAGE_TABLE_FLAGS) &
			  NVPM_PAGE_TABLE_CACHEABLE);
	/*
	 * Drivers before 580 report no flags. With these drivers, this function recognizes coherent
	 * memory, because the kernel treats it as RAM.
	 */
	if (!table->entries || !table->pages)
		return 0;
	phys = table->pages[0]->physical_address;
	/*
	 * In some kernels, pfn_valid() is only for GPL modules, so this function uses
	 * virt_addr_valid(). On x86, virt_addr_valid() would mistake a BAR at about 132 TiB for the
	 * kernel's text, but no machine has a BAR at such an address.
	 */
	if (!virt_addr_valid(__va(phys)))
		return 0;
	page = pfn_to_page(PHYS_PFN(phys));
	if (nvpm_is_p2pdma(page))
		return 0;
	if (!PageReserved(page) && !is_zone_device_page(page))
		return 1;
	/*
	 * Until it is online, coherent memory of a GPU has pages that are reserved or belong to a
	 * device. A BAR may also have such pages, if the driver has made them, but a BAR is not
	 * coherent memory.
	 */
	return nvpm_is_bar(phys) ? 0 : -EOPNOTSUPP;
}
