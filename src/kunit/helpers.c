// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* For the tests inside the kernel: what only C can say. */
#include <kunit/device.h>
#include <kunit/static_stub.h>
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include "../shim.h"
#include "helpers.h"

struct workqueue_struct *nvpm_kunit_threads(void)
{
	return alloc_workqueue("nv_peer_mem_kunit", WQ_UNBOUND, 0);
}

int nvpm_kunit_module_refs(void)
{
	return module_refcount(THIS_MODULE);
}

struct device *nvpm_kunit_plain_device(void)
{
	struct device *dev = kunit_device_register(kunit_get_current_test(), "nv_peer_mem");

	return IS_ERR(dev) ? NULL : dev;
}

static void nvpm_kunit_put_pci_device(void *pci)
{
	pci_dev_put(pci);
}

struct device *nvpm_kunit_pci_device(void)
{
	struct pci_dev *pci = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);

	if (!pci || kunit_add_action_or_reset(kunit_get_current_test(),
					      nvpm_kunit_put_pci_device, pci))
		return NULL;
	return &pci->dev;
}

void nvpm_kunit_replace_dma(int (*map)(struct device *dev, u64 phys, size_t len, u64 *addr),
			    void (*unmap)(struct device *dev, u64 addr, size_t len))
{
	struct kunit *test = kunit_get_current_test();

	kunit_activate_static_stub(test, nvpm_dma_map, *map);
	kunit_activate_static_stub(test, nvpm_dma_unmap, *unmap);
}
