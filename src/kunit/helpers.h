/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For kunit.rs: macros of KUnit, and a device. To be called in a running test. */
#ifndef NVPM_KUNIT_HELPERS_H
#define NVPM_KUNIT_HELPERS_H

#include <linux/types.h>

struct device;

/* Lets warnings be printed again after nvpm_ratelimit() has said no (module.c). */
void nvpm_kunit_warn_again(void);

/* Some PCI device, until the test's end; NULL if there is none. */
struct device *nvpm_kunit_pci_device(void);

/* Replaces nvpm_dma_map() and nvpm_dma_unmap() until the test's end. */
void nvpm_kunit_replace_dma(int (*map)(struct device *dev, u64 phys, size_t len, u64 *addr),
			    void (*unmap)(struct device *dev, u64 addr, size_t len));

#endif
