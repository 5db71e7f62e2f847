// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices, and how memory is mapped for them.
 */
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "compat.h"
#include "shim.h"

struct pci_dev *nvpm_pci_dev(struct device *dev)
{
	return dev && dev_is_pci(dev) ? to_pci_dev(dev) : NULL;
}

bool nvpm_revocable(struct device *dev)
{
	/* Alibaba's erdma: an invalidation would hang, and the GPU with it. */
	return !dev->driver || strcmp(dev->driver->name, "erdma");
}

u32 nvpm_max_segment(struct device *dev)
{
	return dma_get_max_seg_size(dev);
}

#ifdef NVPM_DMA_RANGES
static struct dma_iova_state *nvpm_range_state(struct nvpm_range *range)
{
	static_assert(sizeof(range->state) >= sizeof(struct dma_iova_state));
	return (struct dma_iova_state *)range->state;
}

bool nvpm_range_begin(struct device *dev, struct nvpm_range *range, u64 phys,
		      u64 len)
{
	range->linked = 0;
	return dma_iova_try_alloc(dev, nvpm_range_state(range), phys, len);
}

int nvpm_range_add(struct device *dev, struct nvpm_range *range, u64 phys,
		   u64 len)
{
	int ret;

	cond_resched();
	ret = dma_iova_link(dev, nvpm_range_state(range), phys, range->linked,
			    len, DMA_BIDIRECTIONAL, DMA_ATTR_MMIO);
	if (!ret)
		range->linked += len;
	return ret;
}

int nvpm_range_end(struct device *dev, struct nvpm_range *range, u64 *addr)
{
	struct dma_iova_state *state = nvpm_range_state(range);

	*addr = state->addr;
	return dma_iova_sync(dev, state, 0, range->linked);
}

void nvpm_range_undo(struct device *dev, struct nvpm_range *range)
{
	dma_iova_destroy(dev, nvpm_range_state(range), range->linked,
			 DMA_BIDIRECTIONAL, DMA_ATTR_MMIO);
}
#else
bool nvpm_range_begin(struct device *dev, struct nvpm_range *range, u64 phys,
		      u64 len)
{
	return false;
}

int nvpm_range_add(struct device *dev, struct nvpm_range *range, u64 phys,
		   u64 len)
{
	return -EOPNOTSUPP;
}

int nvpm_range_end(struct device *dev, struct nvpm_range *range, u64 *addr)
{
	return -EOPNOTSUPP;
}

void nvpm_range_undo(struct device *dev, struct nvpm_range *range)
{
}
#endif
