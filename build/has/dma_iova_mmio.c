// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiles if dma_iova_link() can map memory that is not RAM (Linux 6.18 and later). */
#include <linux/dma-mapping.h>

static inline int question(struct device *dev, struct dma_iova_state *state, phys_addr_t phys)
{
	return dma_iova_link(dev, state, phys, 0, PAGE_SIZE, DMA_BIDIRECTIONAL, DMA_ATTR_MMIO);
}
