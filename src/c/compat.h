/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Replacements for names that some of the supported kernels (4.18 and later) lack. build/has finds
 * out which names the kernel's headers have.
 */
#ifndef NVPM_COMPAT_H
#define NVPM_COMPAT_H

#include <linux/dma-mapping.h>
#include <linux/kobject.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "answers.h"

#ifndef static_assert /* 5.1 */
#define static_assert(condition) _Static_assert(condition, #condition)
#endif

/*
 * nvpm_is_p2pdma(PAGE): tells whether a page is memory of a PCI device. Kernels before 4.20 lack
 * the test. They are older than the GPUs whose memory is RAM to the kernel, so for these kernels
 * every page of a device counts as memory of a PCI device.
 */
#ifdef NVPM_HAS_IS_PCI_P2PDMA_PAGE
#define nvpm_is_p2pdma(page) is_pci_p2pdma_page(page)
#else
#define nvpm_is_p2pdma(page) is_zone_device_page(page)
#endif

/*
 * NVPM_PROC_FILE(NAME, OPEN, RELEASE): defines the operations of a file in proc that uses seq_file.
 */
#ifdef NVPM_HAS_PROC_OPS
#define NVPM_PROC_FILE(name, opens, releases)		\
	static const struct proc_ops name = {		\
		.proc_open = (opens),			\
		.proc_read = seq_read,			\
		.proc_lseek = seq_lseek,		\
		.proc_release = (releases),		\
	}
#else
#include <linux/fs.h>
#define NVPM_PROC_FILE(name, opens, releases)		\
	static const struct file_operations name = {	\
		.open = (opens),			\
		.read = seq_read,			\
		.llseek = seq_lseek,			\
		.release = (releases),			\
	}
#endif

/* Returns the start time of the task, in nanoseconds since boot. */
static inline u64 nvpm_task_born(const struct task_struct *task)
{
#ifdef NVPM_HAS_START_BOOTTIME
	return task->start_boottime;
#else
	return task->real_start_time;
#endif
}

/* NVPM_FILES(GROUP): initializes the field of a kobj_type that names its files. */
#ifdef NVPM_HAS_DEFAULT_GROUPS
#define NVPM_FILES(group) .default_groups = (const struct attribute_group *[]){ &(group), NULL }
#else
#define NVPM_FILES(group) .default_attrs = (group).attrs
#endif

/*
 * dma_iova_link() maps many extents of device memory into one range of addresses. Only GPL modules
 * may call dma_iova_link(), so a module for a proprietary driver uses these replacements, which
 * always fail.
 */
#if !defined(NVPM_HAS_DMA_IOVA_MMIO) || !defined(NVPM_OPEN_DRIVER)
struct nvpm_no_iova_state {
	dma_addr_t addr;
};

#define dma_iova_state nvpm_no_iova_state
#define dma_iova_try_alloc(dev, state, phys, size) false
#define dma_iova_link(dev, state, phys, offset, size, dir, attrs) (-EOPNOTSUPP)
#define dma_iova_sync(dev, state, offset, size) (-EOPNOTSUPP)
#define dma_iova_destroy(dev, state, mapped, dir, attrs) do {} while (0)
#endif

#endif
