// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiles if the kernel can recognise pages of PCI devices' memory (Linux 4.20 and later). */
#include <linux/memremap.h>
#include <linux/mm.h>

static inline bool question(const struct page *page)
{
	return is_pci_p2pdma_page(page);
}
