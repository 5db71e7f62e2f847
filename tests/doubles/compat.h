/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names of newer kernels that the doubles use, for kernels that lack them. The common
 * header of each double includes this file.
 */
#ifndef LAB_COMPAT_H
#define LAB_COMPAT_H

#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/version.h>

#ifndef kzalloc_obj /* 7.0 */
#define lab_second(first, second, ...) second
#define kzalloc_obj(object, ...) \
	kzalloc(sizeof(object), lab_second(0, ##__VA_ARGS__, GFP_KERNEL))
#endif

/* Kernels since 6.5 have this header. Updates of some earlier series also have it. */
#if __has_include(<linux/cleanup.h>)
#include <linux/cleanup.h>
#else
#define __free(function) __attribute__((__cleanup__(lab_free_##function)))
static inline void lab_free_kfree(void *variable)
{
	void *object = *(void **)variable;

	if (!IS_ERR_OR_NULL(object))
		kfree(object);
}

/* The doubles use guard(srcu)(&object) and guard(mutex)(&object). */
#define guard(kind) lab_guard_##kind
#define lab_guard_mutex(lock)						\
	struct mutex *lab_guard __attribute__((__cleanup__(lab_mutex_end), __unused__)) = \
		lab_mutex_begin(lock)
static inline struct mutex *lab_mutex_begin(struct mutex *lock)
{
	mutex_lock(lock);
	return lock;
}

static inline void lab_mutex_end(struct mutex **guard)
{
	mutex_unlock(*guard);
}

#define lab_guard_srcu(of_this)						\
	struct lab_srcu lab_guard __attribute__((__cleanup__(lab_srcu_end))) = { \
		.of = (of_this), .index = srcu_read_lock(of_this),	\
	}
struct lab_srcu {
	struct srcu_struct *of;
	int index;
};

static inline void lab_srcu_end(struct lab_srcu *guard)
{
	srcu_read_unlock(guard->of, guard->index);
}

#define DEFINE_CLASS(name, type, end, begin, args...)			\
typedef type lab_class_##name;						\
static inline void lab_class_end_##name(type *variable)			\
{									\
	type _T = *variable;						\
	end;								\
}									\
static inline type lab_class_begin_##name(args)				\
{									\
	return begin;							\
}
#define CLASS(name, variable)						\
	lab_class_##name variable __attribute__((__cleanup__(lab_class_end_##name))) = \
		lab_class_begin_##name
#endif

#ifndef DEFINE_SHOW_STORE_ATTRIBUTE /* 6.7 */
#define DEFINE_SHOW_STORE_ATTRIBUTE(name)				\
static int name##_open(struct inode *inode, struct file *file)		\
{									\
	return single_open(file, name##_show, inode->i_private);	\
}									\
static const struct file_operations name##_fops = {			\
	.owner = THIS_MODULE,						\
	.open = name##_open,						\
	.read = seq_read,						\
	.write = name##_write,						\
	.llseek = seq_lseek,						\
	.release = single_release,					\
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void lab_vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}
#define vm_flags_set lab_vm_flags_set
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define mm_get_unmapped_area(file, addr, len, pgoff, flags) \
	current->mm->get_unmapped_area(file, addr, len, pgoff, flags)
#elif LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define mm_get_unmapped_area(file, addr, len, pgoff, flags) \
	(mm_get_unmapped_area)(current->mm, file, addr, len, pgoff, flags)
#endif

/*
 * In these kernels, dma_map_resource() refuses memory with struct pages as RAM. Without an IOMMU,
 * this replacement leaves the address of such memory as it is.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 0, 0)
static inline dma_addr_t lab_map_resource(struct device *dev, phys_addr_t phys, size_t size,
					  enum dma_data_direction dir, unsigned long attrs)
{
	if (pfn_valid(PHYS_PFN(phys)))
		return phys;
	return dma_map_resource(dev, phys, size, dir, attrs);
}
#define dma_map_resource(dev, phys, size, dir, attrs) \
	lab_map_resource(dev, phys, size, dir, attrs)
#endif

/*
 * Tells whether a device uses physical addresses. The doubles need this function, because they
 * cannot check whether a client unmaps physical addresses.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 10, 0)
#include <linux/dma-map-ops.h>
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#include <linux/iommu-dma.h>
#else
#define use_dma_iommu(dev) false
#endif
static inline bool lab_dma_direct(struct device *dev)
{
	return !IS_ENABLED(CONFIG_DMA_API_DEBUG) && !get_dma_ops(dev) && !use_dma_iommu(dev);
}

/* The condition for kernels that can map many pieces of device memory to one range of addresses. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0) && IS_ENABLED(CONFIG_IOMMU_DMA)
#define LAB_DMA_RANGES
#endif

/* Lets a module use the functions of dma-bufs. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define LAB_IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0)
#define LAB_IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define LAB_IMPORT_DMA_BUF
#endif

/*
 * Older kernels have only pci_request_region(). For a managed device, it does the work of the
 * managed function, too.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define pcim_request_region pci_request_region
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 14, 0)
#define __state state /* of a task */
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define ftrace_regs pt_regs
#define ftrace_regs_set_instruction_pointer instruction_pointer_set
#define may_split split
#define FTRACE_OPS_FL_RECURSION 0
/*
 * Modules cannot call this function in older kernels, so this replacement does nothing and the
 * filters stay.
 */
#define ftrace_free_filter(ops) ((void)(ops))
#define LAB_SAVES_REGS FTRACE_OPS_FL_SAVE_REGS
#elif LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define ftrace_regs_set_instruction_pointer ftrace_instruction_pointer_set
#endif
#ifndef LAB_SAVES_REGS
#define LAB_SAVES_REGS 0
#endif

/* ---- RDMA -------------------------------------------------------------- */

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 2, 0)
#define ib_umem_get_va ib_umem_get
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#define kobject_init(kobj, type) (kobject_init)(kobj, (struct kobj_type *)(type))
#endif

/* Access to the list of a umem: its address, making it empty, and counting its entries. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 15, 0)
#define lab_umem_table(umem) (&(umem)->sg_head)
#define lab_umem_clear(umem) memset(&(umem)->sg_head, 0, sizeof((umem)->sg_head))
#define lab_umem_mapped(umem) ((umem)->nmap = (umem)->sg_nents = (umem)->sg_head.nents)
#else
#define lab_umem_table(umem) (&(umem)->sgt_append.sgt)
#define lab_umem_clear(umem) memset(&(umem)->sgt_append, 0, sizeof((umem)->sgt_append))
#define lab_umem_mapped(umem) do { } while (0)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 13, 0)
#define lockdep_assert_not_held(lock) do { } while (0)
#define rxe_mr rxe_mem
#endif

#endif
