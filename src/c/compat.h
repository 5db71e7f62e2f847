/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What kernels from 4.18 on lack or call otherwise. Version numbers stand in this
 * file alone.
 */
#ifndef NVPM_COMPAT_H
#define NVPM_COMPAT_H

#include <linux/dma-mapping.h>
#include <linux/kobject.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/version.h>

/* With NVPM_OLDEST newer kernels compile what the oldest ones need, for tests. */
#ifdef NVPM_OLDEST
#define NVPM_KERNEL KERNEL_VERSION(4, 18, 0)
#else
#define NVPM_KERNEL LINUX_VERSION_CODE
#endif

#ifndef static_assert /* 5.1 */
#define static_assert(condition) _Static_assert(condition, #condition)
#endif

/* A page of a PCI device's memory; GPUs that were RAM to the kernel are younger than 4.20. */
#if NVPM_KERNEL >= KERNEL_VERSION(4, 20, 0)
#define nvpm_is_p2pdma(page) is_pci_p2pdma_page(page)
#else
#define nvpm_is_p2pdma(page) is_zone_device_page(page)
#endif

/* NVPM_PROC_FILE(NAME, OPEN): a file of proc that seq_file reads. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 6, 0)
#define NVPM_PROC_FILE(name, opens)			\
	static const struct proc_ops name = {		\
		.proc_open = (opens),			\
		.proc_read = seq_read,			\
		.proc_lseek = seq_lseek,		\
		.proc_release = seq_release_private,	\
	}
#else
#include <linux/fs.h>
#define NVPM_PROC_FILE(name, opens)			\
	static const struct file_operations name = {	\
		.open = (opens),			\
		.read = seq_read,			\
		.llseek = seq_lseek,			\
		.release = seq_release_private,		\
	}
#endif

/* When the task began, in nanoseconds since boot. */
static inline u64 nvpm_task_born(const struct task_struct *task)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 5, 0)
	return task->start_boottime;
#else
	return task->real_start_time;
#endif
}

/* NVPM_FILES(GROUP): a kobj_type's files, those of one attribute group. */
#if NVPM_KERNEL >= KERNEL_VERSION(5, 2, 0)
#define NVPM_FILES(group) .default_groups = (const struct attribute_group *[]){ &(group), NULL }
#else
#define NVPM_FILES(group) .default_attrs = (group).attrs
#endif

/*
 * dma_iova_link() gives many extents of memory that is not RAM one range of addresses. It
 * came with 6.18, and is for GPL modules only, so not for one beside a proprietary driver.
 */
#if NVPM_KERNEL < KERNEL_VERSION(6, 18, 0) || !defined(NVPM_OPEN_DRIVER)
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
