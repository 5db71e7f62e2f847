// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device that does DMA, and what its bus addresses mean.
 *
 * A hardware RDMA device has a DMA device. A software one has none: the NIC
 * below it stands in, as clients expect a PCI device.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <rdma/ib_verbs.h>

#include "core_priv.h"
#include "peer_server.h"

/* With a reference, or NULL. */
struct device *peer_device_get(struct ib_device *ibdev)
{
	struct net_device *netdev;
	struct device *dev;

	if (ibdev->dma_device)
		return get_device(ibdev->dma_device);
	netdev = ib_device_get_netdev(ibdev, rdma_start_port(ibdev));
	if (!netdev)
		return NULL;
	dev = netdev->dev.parent;
	while (dev && !dev_is_pci(dev))
		dev = dev->parent;
	dev = get_device(dev);
	dev_put(netdev);
	/* A NIC says nothing of this, an RDMA device says 2 GiB (mlx5). */
	if (dev)
		dma_set_max_seg_size(dev, peer_switched(PEER_SHORT_SEGMENTS) ?
				     SZ_64K : SZ_2G);
	return dev;
}

static struct device *peer_other_device(struct device *dev)
{
	struct pci_dev *other = NULL;

	for_each_pci_dev(other)
		if (&other->dev != dev)
			return &other->dev;
	return NULL;
}

/* What a client is told is the device; with a reference. */
struct device *peer_device_told(struct device *dev)
{
	if (peer_switched(PEER_NULL_DEVICE))
		return NULL;
	if (peer_switched(PEER_OTHER_DEVICE))
		return peer_other_device(dev);
	return get_device(dev);
}

/*
 * The physical address behind a bus address, and for how many of the bytes it
 * goes on without a gap: none if nothing is mapped there for the device.
 */
size_t peer_device_resolve(struct device *dev, dma_addr_t dma, size_t length,
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
