// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The copy engine: bytes between GPU memory and GPU memory, or memory of the
 * CPU, by addresses of the calling process. It is how a program gets at memory
 * that it has mapped without access for the CPU.
 *
 * A copy goes through a buffer, since memory of the CPU may have to be faulted
 * in, which needs the mmap_lock, and that is taken outside of gpu->lock. Each
 * piece is looked up anew: memory that is freed meanwhile ends the copy.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "sim.h"

/* Whoever looks at a word that is being copied sees it before or after. */
static void sim_copy_piece(void *to, const void *from, size_t n)
{
	if (n == 4 && IS_ALIGNED((uintptr_t)to | (uintptr_t)from, 4))
		WRITE_ONCE(*(u32 *)to, READ_ONCE(*(const u32 *)from));
	else if (n == 8 && IS_ALIGNED((uintptr_t)to | (uintptr_t)from, 8))
		WRITE_ONCE(*(u64 *)to, READ_ONCE(*(const u64 *)from));
	else
		memcpy(to, from, n);
}

/* Between @buffer and the frames at @va. gpu->lock is held. */
static void sim_copy_frames(struct sim_alloc *alloc, u64 va, void *buffer,
			    size_t n, bool write)
{
	u64 at = va - alloc->va;
	size_t part;
	void *p;

	for (; n; n -= part, at += part, buffer += part) {
		p = sim_alloc_kva(alloc, at >> SIM_PAGE_SHIFT) + at % SIM_PAGE_SIZE;
		part = min_t(size_t, n, SIM_PAGE_SIZE - at % SIM_PAGE_SIZE);
		sim_copy_piece(write ? p : buffer, write ? buffer : p, part);
	}
}

static int sim_copy_cpu(u64 va, void *buffer, size_t n, bool write)
{
	void __user *user = u64_to_user_ptr(va);
	unsigned long left = write ? copy_to_user(user, buffer, n) :
				     copy_from_user(buffer, user, n);

	return left ? -EFAULT : 0;
}

/* As far as one allocation goes, then the next one. */
static int sim_copy_one(struct sim_gpu *gpu, u64 va, void *buffer, size_t n,
			bool write)
{
	struct sim_alloc *alloc;
	size_t part;
	bool backed;

	for (; n; n -= part, va += part, buffer += part) {
		mutex_lock(&gpu->lock);
		alloc = gpu->present ? sim_alloc_find(gpu, va) : NULL;
		part = alloc ? min_t(size_t, n, alloc->va + alloc->size - va) : n;
		backed = alloc && !alloc->unbacked;
		if (backed)
			sim_copy_frames(alloc, va, buffer, part, write);
		mutex_unlock(&gpu->lock);
		if (!backed && sim_copy_cpu(va, buffer, part, write))
			return -EFAULT;
	}
	return 0;
}

long sim_copy(struct sim_gpu *gpu, const struct lab_gpu_copy *copy)
{
	void *buffer = kmalloc(SIM_PAGE_SIZE, GFP_KERNEL);
	u64 done = 0;
	size_t n;
	int ret = 0;

	if (!buffer)
		return -ENOMEM;
	for (; done < copy->size && !ret; done += n) {
		n = min_t(size_t, copy->size - done, SIM_PAGE_SIZE);
		ret = fatal_signal_pending(current) ? -EINTR : 0;
		if (!ret)
			ret = sim_copy_one(gpu, copy->from + done, buffer, n, false);
		if (!ret)
			ret = sim_copy_one(gpu, copy->to + done, buffer, n, true);
		cond_resched();
	}
	kfree(buffer);
	return ret;
}
