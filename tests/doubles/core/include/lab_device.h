/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device that does DMA for an RDMA device, and the memory behind its bus addresses.
 */
#ifndef LAB_DEVICE_H
#define LAB_DEVICE_H

#include <linux/iommu.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <rdma/ib_verbs.h>

/*
 * Returns a reference to the PCI device that does DMA for the RDMA device, or NULL. A software RDMA
 * device does no DMA. For such a device, the doubles treat the NIC that the device uses as the RDMA
 * device, because the neighbours expect a PCI device.
 */
static inline struct device *lab_device_get(struct ib_device *ibdev)
{
	struct net_device *netdev;
	struct device *dev = ibdev->dma_device;

	if (dev && dev_is_pci(dev))
		return get_device(dev);
	netdev = ib_device_get_netdev(ibdev, rdma_start_port(ibdev));
	if (!netdev)
		return NULL;
	dev = netdev->dev.parent;
	while (dev && !dev_is_pci(dev))
		dev = dev->parent;
	dev = get_device(dev);
	dev_put(netdev);
	return dev;
}

/*
 * Stores the physical address that a bus address refers to. Returns how many of the @length bytes
 * follow without a gap, or 0 if nothing is mapped at the address for the device.
 */
static inline size_t lab_device_resolve(struct device *dev, dma_addr_t dma, size_t length,
					phys_addr_t *phys)
{
	struct iommu_domain *domain = dev ? iommu_get_domain_for_dev(dev) : NULL;
	size_t run = PAGE_SIZE;

	if (!domain) {
		*phys = dma;
		return length;
	}
	*phys = iommu_iova_to_phys(domain, dma);
	if (!*phys)
		return 0;
	while (run < length &&
	       iommu_iova_to_phys(domain, dma + run) == *phys + run)
		run += PAGE_SIZE;
	return run;
}

#endif
