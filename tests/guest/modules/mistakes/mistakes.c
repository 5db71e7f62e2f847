// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Makes one mistake when it is loaded. The kernel's checkers must report this mistake, because
 * otherwise their silence in other scenarios would prove nothing (scenarios/harness.sh).
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/slab.h>

static char *which = "";
module_param(which, charp, 0);
MODULE_PARM_DESC(which, "leak, order or unmap");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static void lock_both(struct mutex *outer, struct mutex *inner)
{
	mutex_lock(outer);
	mutex_lock(inner);
	mutex_unlock(inner);
	mutex_unlock(outer);
}

/* Unmaps a mapping twice, on any device that does DMA. */
static int unmap_twice(void)
{
	struct pci_dev *pdev = pci_get_class(PCI_CLASS_NETWORK_ETHERNET << 8, NULL);
	void *page = kmalloc(PAGE_SIZE, GFP_KERNEL);
	dma_addr_t addr;
	int times;

	if (pdev && page) {
		addr = dma_map_single(&pdev->dev, page, PAGE_SIZE, DMA_TO_DEVICE);
		for (times = 0; times < 2; times++)
			dma_unmap_single(&pdev->dev, addr, PAGE_SIZE, DMA_TO_DEVICE);
	}
	kfree(page);
	pci_dev_put(pdev);
	return pdev ? 0 : -ENODEV;
}

static int __init mistakes_init(void)
{
	if (!strcmp(which, "leak"))
		return kmalloc(4000, GFP_KERNEL) ? 0 : -ENOMEM;
	if (!strcmp(which, "order")) {
		lock_both(&first, &second);
		lock_both(&second, &first);
		return 0;
	}
	return strcmp(which, "unmap") ? -EINVAL : unmap_twice();
}
module_init(mistakes_init);

static void __exit mistakes_exit(void)
{
}
module_exit(mistakes_exit);

MODULE_DESCRIPTION("Mistakes for the kernel's checkers");
MODULE_LICENSE("Dual BSD/GPL");
