// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device, and the module.
 *
 * The GPU is QEMU's ivshmem-plain: a PCI function whose BAR 2 is a file of the
 * host, so that a test can look at GPU memory from outside the guest. The BAR
 * gets struct pages, as the BAR of a GPU may: a software HCA reads and writes
 * it through them. Nothing here depends on an IOMMU; clients map the BAR for
 * their devices through the DMA API.
 *
 * The module also loads without such a device. Every address is then unknown to it, as to
 * the real driver without a GPU.
 */
#include <linux/memremap.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/pci-p2pdma.h>

#include "sim.h"

#define SIM_BAR 2

struct sim_gpu sim_gpu = {
	.misc = {
		.minor = MISC_DYNAMIC_MINOR,
		.name = "nvidia-lab",
		.mode = 0666,
		.fops = &sim_device_fops,
	},
	.lock = __MUTEX_INITIALIZER(sim_gpu.lock),
	.allocs = LIST_HEAD_INIT(sim_gpu.allocs),
	.live = LIST_HEAD_INIT(sim_gpu.live),
	.dead = LIST_HEAD_INIT(sim_gpu.dead),
};

/*
 * Adds struct pages for the BAR; without PCI peer-to-peer in the kernel, as ordinary device
 * pages.
 */
static int sim_add_pages(struct pci_dev *pdev)
{
	struct dev_pagemap *map;

	if (IS_ENABLED(CONFIG_PCI_P2PDMA))
		return pci_p2pdma_add_resource(pdev, SIM_BAR, 0, 0);
	map = devm_kzalloc(&pdev->dev, sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	map->type = MEMORY_DEVICE_GENERIC;
	map->range.start = pci_resource_start(pdev, SIM_BAR);
	map->range.end = pci_resource_end(pdev, SIM_BAR);
	map->nr_range = 1;
	return PTR_ERR_OR_ZERO(devm_memremap_pages(&pdev->dev, map));
}

static int sim_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sim_gpu *gpu = &sim_gpu;
	u64 size = pci_resource_len(pdev, SIM_BAR);
	int ret;

	if (gpu->size) {
		pci_info(pdev, "one GPU is enough\n");
		return -EBUSY;
	}
	ret = pcim_enable_device(pdev);
	if (!ret)
		ret = pcim_request_region(pdev, SIM_BAR, KBUILD_MODNAME);
	if (!ret)
		ret = sim_add_pages(pdev);
	if (ret)
		return ret;

	gpu->nframes = size >> SIM_PAGE_SHIFT;
	gpu->owner = devm_kcalloc(&pdev->dev, gpu->nframes, sizeof(*gpu->owner), GFP_KERNEL);
	if (!gpu->owner)
		return -ENOMEM;
	gpu->bar = pci_resource_start(pdev, SIM_BAR);
	gpu->size = size;
	gpu->kva = page_address(pfn_to_page(PHYS_PFN(gpu->bar)));

	ret = misc_register(&gpu->misc);
	if (ret)
		gpu->size = 0;
	else
		pci_info(pdev, "simulated GPU with %llu MiB at %pa\n", size >> 20, &gpu->bar);
	return ret;
}

/* No memory is in use: mappings hold the module, and the driver cannot be unbound by hand. */
static void sim_remove(struct pci_dev *pdev)
{
	misc_deregister(&sim_gpu.misc);
	sim_gpu.size = 0;
}

static const struct pci_device_id sim_ids[] = {
	{ PCI_DEVICE(0x1af4, 0x1110) },
	{ }
};
MODULE_DEVICE_TABLE(pci, sim_ids);

static struct pci_driver sim_driver = {
	.name = "nvidia",
	.id_table = sim_ids,
	.probe = sim_probe,
	.remove = sim_remove,
	.driver = {
		.suppress_bind_attrs = true,
	},
};

static int sim_module_event(struct notifier_block *nb, unsigned long event,
			    void *data)
{
	if (event == MODULE_STATE_GOING)
		sim_pin_module_gone(data);
	return NOTIFY_OK;
}

static struct notifier_block sim_module_nb = {
	.notifier_call = sim_module_event,
};

static int __init sim_init(void)
{
	int ret;

	sim_api_init();
	sim_lab_init();
	sim_watch_init();
	ret = sim_inject_init();
	if (ret)
		goto no_inject;
	ret = sim_own_dma_init();
	if (ret)
		goto no_own_dma;
	ret = register_module_notifier(&sim_module_nb);
	if (ret)
		goto no_notifier;
	ret = pci_register_driver(&sim_driver);
	if (ret)
		goto no_driver;
	return 0;

no_driver:
	unregister_module_notifier(&sim_module_nb);
no_notifier:
	sim_own_dma_exit();
no_own_dma:
	sim_inject_exit();
no_inject:
	sim_watch_exit();
	sim_lab_exit();
	return ret;
}
module_init(sim_init);

static void __exit sim_exit(void)
{
	pci_unregister_driver(&sim_driver);
	unregister_module_notifier(&sim_module_nb);
	sim_own_dma_exit();
	sim_inject_exit();
	sim_quarantine_trim(0);
	sim_coherent_drop();
	sim_watch_exit();
	sim_lab_exit();
}
module_exit(sim_exit);

MODULE_DESCRIPTION("Simulated NVIDIA driver for testing peer-to-peer clients");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(NV_VERSION);
