/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For the tests inside the kernel: what they need of KUnit and of the kernel
 * that only C can say. To be called in a running test; KUnit takes back at the
 * test's end what these give, unless it says otherwise.
 */
#ifndef NVPM_KUNIT_HELPERS_H
#define NVPM_KUNIT_HELPERS_H

#include <linux/types.h>

struct device;
struct workqueue_struct;

/* A work queue whose work items each have a thread; to be destroyed, or NULL. */
struct workqueue_struct *nvpm_kunit_threads(void);

/* References to this module. */
int nvpm_kunit_module_refs(void);

/* Lets messages be printed again after nvpm_may_complain() has said no (shim.c). */
void nvpm_kunit_complain_again(void);

/* A device that is not on the PCI bus, and one that is; NULL if there is none. */
struct device *nvpm_kunit_plain_device(void);
struct device *nvpm_kunit_pci_device(void);

/* Has the running test map and unmap with these instead of nvpm_dma_*map(). */
void nvpm_kunit_replace_dma(int (*map)(struct device *dev, u64 phys, size_t len, u64 *addr),
			    void (*unmap)(struct device *dev, u64 addr, size_t len));

#endif
