/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the doubles take from newer kernels, for older ones. The build scripts put it
 * before every file of theirs.
 */
#ifndef LAB_COMPAT_H
#define LAB_COMPAT_H

#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/srcu.h>
#include <linux/version.h>

#ifndef kzalloc_obj /* 7.0 */
#define lab_second(first, second, ...) second
#define kzalloc_obj(object, ...) \
	kzalloc(sizeof(object), lab_second(0, ##__VA_ARGS__, GFP_KERNEL))
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define __free(function) __attribute__((__cleanup__(lab_free_##function)))
static inline void lab_free_kfree(void *variable)
{
	void *object = *(void **)variable;

	if (!IS_ERR_OR_NULL(object))
		kfree(object);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
/* guard(srcu)(&of_this); the only kind that is used. */
#define guard(kind) lab_guard_##kind
#define lab_guard_srcu(of)						\
	struct lab_srcu lab_guard __attribute__((__cleanup__(lab_srcu_end))) = { \
		.of = (of), .index = srcu_read_lock(of),		\
	}
struct lab_srcu {
	struct srcu_struct *of;
	int index;
};

static inline void lab_srcu_end(struct lab_srcu *guard)
{
	srcu_read_unlock(guard->of, guard->index);
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
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define ftrace_regs_set_instruction_pointer ftrace_instruction_pointer_set
#endif

#endif
