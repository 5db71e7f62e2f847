// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests devices and mappings. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

static const struct bus_type other_bus;
static struct device_driver driver;
static struct pci_bus bus = { .number = 0x3b, .domain = 0x10002 };
static struct pci_dev pci = {
	.bus = &bus,
	.devfn = 0xa3,
	.dev = { .bus = &pci_bus_type, .driver = &driver },
};

TEST(is_a_pci_device)
{
	struct device other = { .bus = &other_bus };

	TRUE(nvpm_pci_dev(&pci.dev) == &pci);
	TRUE(!nvpm_pci_dev(&other));
	TRUE(!nvpm_pci_dev(NULL));
}

TEST(its_address)
{
	u32 domain;
	u16 devfn;

	nvpm_pci_address(&pci.dev, &domain, &devfn);
	SAME(0x10002, domain);
	SAME(0x3ba3, devfn);
	bus.number = 0xff;
	nvpm_pci_address(&pci.dev, &domain, &devfn);
	SAME(0xffa3, devfn);
}

TEST(two_drivers_cannot_invalidate)
{
	driver.name = "mlx5_core";
	TRUE(nvpm_can_invalidate(&pci.dev));
	driver.name = "erdma";
	TRUE(!nvpm_can_invalidate(&pci.dev));
	driver.name = "bnxt_en";
	TRUE(!nvpm_can_invalidate(&pci.dev));
	driver.name = "erdma2";
	TRUE(nvpm_can_invalidate(&pci.dev));
	pci.dev.driver = NULL;
	TRUE(nvpm_can_invalidate(&pci.dev));
}

TEST(maps_and_unmaps)
{
	u64 addr = 5;

	SAME(0, nvpm_dma_map(&pci.dev, 0x3000010000, 0x20000, &addr));
	SAME(0x8000010000, addr);
	SAME(0x3000010000, mapping.phys);
	SAME(0x20000, mapping.size);
	nvpm_dma_unmap(&pci.dev, addr, 0x20000);
	TRUE(!mapping.dev);
}

TEST(cannot_be_mapped)
{
	u64 addr = 5;

	faults.dma = true;
	SAME(-EIO, nvpm_dma_map(&pci.dev, 0x10000, 0x20000, &addr));
	SAME(5, addr);
}

static struct nvpm_iova iova;

#if defined(NVPM_HAS_DMA_IOVA_MMIO) && defined(NVPM_OPEN_DRIVER)
TEST(one_range_for_two_extents)
{
	u64 addr = 5;

	TRUE(nvpm_iova_alloc(&pci.dev, &iova, 0x3000010000, 0x30000));
	SAME(0x30000, mapping.size);
	SAME(0, nvpm_iova_link(&pci.dev, &iova, 0x3000010000, 0, 0x10000));
	SAME(0, nvpm_iova_link(&pci.dev, &iova, 0x5000000000, 0x10000, 0x20000));
	SAME(0x30000, iova_linked);
	SAME(0, nvpm_iova_sync(&pci.dev, &iova, 0x30000, &addr));
	SAME(0x30000, iova_synced);
	SAME(0x7000000000, addr);
	nvpm_iova_destroy(&pci.dev, &iova, 0x30000);
	TRUE(!mapping.dev);
}

TEST(a_range_that_fails)
{
	u64 addr = 5;

	faults.iova = true;
	TRUE(!nvpm_iova_alloc(&pci.dev, &iova, 0, 0x30000));
	faults.iova = false;
	TRUE(nvpm_iova_alloc(&pci.dev, &iova, 0x10000, 0x30000));
	SAME(0, nvpm_iova_link(&pci.dev, &iova, 0x10000, 0, 0x10000));
	faults.iova_link = true;
	TRUE(nvpm_iova_link(&pci.dev, &iova, 0x50000, 0x10000, 0x20000) < 0);
	faults.iova_sync = true;
	TRUE(nvpm_iova_sync(&pci.dev, &iova, 0x10000, &addr) < 0);
	/* The caller passes the length of the first part only, as if the rest were not linked. */
	nvpm_iova_destroy(&pci.dev, &iova, 0x10000);
	TRUE(!mapping.dev);
}
#else
TEST(no_ranges)
{
	u64 addr;

	TRUE(!nvpm_iova_alloc(&pci.dev, &iova, 0x10000, 0x30000));
	TRUE(nvpm_iova_link(&pci.dev, &iova, 0x10000, 0, 0x30000) < 0);
	TRUE(nvpm_iova_sync(&pci.dev, &iova, 0x30000, &addr) < 0);
	nvpm_iova_destroy(&pci.dev, &iova, 0);
}
#endif
