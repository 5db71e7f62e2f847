// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Functions for kunit.rs. They call macros of KUnit, or find a device. */
#include <kunit/static_stub.h>
#include <kunit/test-bug.h>
#include <kunit/test.h>
#include <linux/pci.h>

#include "../c/nvpm.h"
#include "helpers.h"

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
