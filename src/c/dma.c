// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that Rust calls for devices, DMA mappings and scatterlists. For these purposes the
 * kernel only has inline functions and macros, which Rust cannot call.
 */
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/string.h>

#include "compat.h"
#include "nvpm.h"
#ifdef NVPM_KUNIT
#include <kunit/static_stub.h>
#include "../kunit/helpers.h"
#else
#define KUNIT_STATIC_STUB_REDIRECT(...) do {} while (0)
#endif

const u64 nvpm_page_size = PAGE_SIZE;

struct pci_dev *nvpm_pci_dev(struct device *dev)
{
	return dev && dev_is_pci(dev) ? to_pci_dev(dev) : NULL;
}

bool nvpm_can_invalidate(struct device *dev)
{
	/*
	 * Alibaba's erdma never tells the core that a registration is complete, and Broadcom's
	 * bnxt_re (in the driver bnxt_en) does not do so for the registration of a queue. An
	 * invalidation of such a registration would wait for ever, and the GPU's driver would wait
	 * for the invalidation. In bnxt_re, moreover, an invalidation returns before the device has
	 * stopped, if another thread deregisters at the same time.
	 */
	return !dev->driver || (strcmp(dev->driver->name, "erdma") &&
				strcmp(dev->driver->name, "bnxt_en"));
}

u32 nvpm_max_segment(struct device *dev)
{
	return dma_get_max_seg_size(dev);
}

void nvpm_pci_address(struct device *dev, u32 *domain, u16 *devfn)
{
	struct pci_dev *pci = to_pci_dev(dev);

	*domain = pci_domain_nr(pci->bus);
	*devfn = pci->bus->number << 8 | pci->devfn;
}

bool nvpm_is_registered(struct device *dev)
{
	return device_is_registered(dev);
}

/* Maps GPU memory as a resource of the PCI bus, because it is not RAM. */
int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr)
{
	dma_addr_t dma;

	KUNIT_STATIC_STUB_REDIRECT(nvpm_dma_map, dev, phys, len, addr);
	dma = dma_map_resource(dev, phys, len, DMA_BIDIRECTIONAL, 0);
	if (dma_mapping_error(dev, dma))
		return -EIO;
	*addr = dma;
	return 0;
}

void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len)
{
	KUNIT_STATIC_STUB_REDIRECT(nvpm_dma_unmap, dev, addr, len);
	dma_unmap_resource(dev, addr, len, DMA_BIDIRECTIONAL, 0);
}

static struct dma_iova_state *nvpm_iova_state(struct nvpm_iova *iova)
{
	static_assert(sizeof(iova->state) >= sizeof(struct dma_iova_state));
	return (struct dma_iova_state *)iova->state;
}

bool nvpm_iova_alloc(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 len)
{
	return dma_iova_try_alloc(dev, nvpm_iova_state(iova), phys, len);
}

int nvpm_iova_link(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 linked, u64 len)
{
	return dma_iova_link(dev, nvpm_iova_state(iova), phys, linked,
			     len, DMA_BIDIRECTIONAL, DMA_ATTR_MMIO);
}

int nvpm_iova_sync(struct device *dev, struct nvpm_iova *iova, u64 linked, u64 *addr)
{
	struct dma_iova_state *state = nvpm_iova_state(iova);

	*addr = state->addr;
	return dma_iova_sync(dev, state, 0, linked);
}

void nvpm_iova_destroy(struct device *dev, struct nvpm_iova *iova, u64 linked)
{
	dma_iova_destroy(dev, nvpm_iova_state(iova), linked,
			 DMA_BIDIRECTIONAL, DMA_ATTR_MMIO);
}

int nvpm_sg_alloc(struct sg_table *table, u32 entries)
{
	return sg_alloc_table(table, entries, GFP_KERNEL);
}

struct scatterlist *nvpm_sg_next(struct scatterlist *entry)
{
	return sg_next(entry);
}
