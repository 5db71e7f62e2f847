/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Functions for kunit.rs. They may be called only while a test is running. */
#ifndef NVPM_KUNIT_HELPERS_H
#define NVPM_KUNIT_HELPERS_H

#include <linux/types.h>

struct device;

/* Resets the rate limit of warnings (module.c), so that the next warning is printed. */
void nvpm_kunit_warn_again(void);

/* Returns a PCI device that exists until the test's end, or NULL if there is none. */
struct device *nvpm_kunit_pci_device(void);

/* Replaces nvpm_dma_map() and nvpm_dma_unmap() until the test's end. */
void nvpm_kunit_replace_dma(int (*map)(struct device *dev, u64 phys, size_t len, u64 *addr),
			    void (*unmap)(struct device *dev, u64 addr, size_t len));

#endif
