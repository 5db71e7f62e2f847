// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The kernel tells a page of a PCI device's memory from others (Linux 4.20). */
#include <linux/memremap.h>
#include <linux/mm.h>

static inline bool question(const struct page *page)
{
	return is_pci_p2pdma_page(page);
}
