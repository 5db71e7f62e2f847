// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory: allocating it, mapping it for the CPU, freeing it.
 *
 * It stands for cudaMalloc and cudaFree. Memory is handed out in 64 KiB frames
 * of the BAR, to one process (by tgid); what is in it is what was left there.
 * The mapping is of raw page frames, so that get_user_pages refuses it, as it
 * refuses an address that only the GPU knows.
 *
 * Freeing is: take the API lock, call the free callback of every revocable pin
 * one after another, take the memory away from the CPU, scrub it, and let it be
 * allocated again. Persistent pins have no say in the first three steps, but
 * the frames stay reserved, unscrubbed, until the last of them has been put.
 *
 * Which task frees
 *
 * LAB_GPU_FREE runs in the caller, like cudaFree. For munmap and exit the knob
 * "free_from" decides:
 *
 *   task     on the way back to user space, or at the end of exit, in the task
 *            that unmapped. No lock is held, as in the real driver, where the
 *            close of a file does it. This is the default. At exit the order
 *            is that of closed files, last closed first: a verbs context,
 *            whose descriptor is closed after the address space went, is torn
 *            down before the memory.
 *   close    at once, under the mmap_lock of the process, held for writing. At
 *            exit the memory goes before any descriptor is closed.
 *   kthread  in a worker called nv_queue that has no address space, as the
 *            real driver does when closing was interrupted. munmap does not
 *            wait for it; LAB_GPU_FREE does.
 *   process  in a task of another process (inject.c), and else the same.
 *
 * The first of these hangs on a file of its own for each allocation: the last
 * fput() is deferred to a moment without locks, and holds on to this module.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "sim.h"

/* ---- frames ------------------------------------------------------------ */

/* The first free frame in [from, end), or end. */
static u32 sim_next_free(const struct sim_gpu *gpu, u64 from, u32 end)
{
	u32 f;

	for (f = min_t(u64, from, end); f < end; f++)
		if (!gpu->owner[f])
			break;
	return f;
}

/* The frame for the next page, in the layout that was asked for. */
static int sim_pick(const struct sim_gpu *gpu, u32 layout, u32 hint,
		    const struct sim_alloc *alloc, u32 page, u32 *run, u32 *out)
{
	const u32 end = gpu->nframes;
	const u32 per_hole = SZ_2M >> SIM_PAGE_SHIFT;
	u64 last = page ? alloc->frame[page - 1] : 0;
	u64 f;

	switch (layout) {
	case SIM_DESCENDING:
		f = (u64)hint + alloc->npages - 1 - page;
		break;
	case SIM_HOLES64K:
		f = sim_next_free(gpu, page ? last + 2 : hint, end);
		break;
	case SIM_HOLES2M:
		f = sim_next_free(gpu, page ? last + 1 : hint, end);
		while (f < end && (((u32)f ^ hint) & per_hole))
			f = sim_next_free(gpu, round_up(f + 1, per_hole), end);
		break;
	case SIM_FRAGMENTED:
		f = last + 1;
		if (page && *run && f < end && !gpu->owner[f]) {
			--*run;
			break;
		}
		*run = sim_random() % 4;
		hint = sim_random() % end;
		f = sim_next_free(gpu, hint, end);
		if (f == end)
			f = sim_next_free(gpu, 0, end);
		break;
	default:
		f = (u64)hint + page;
		break;
	}

	if (f >= end)
		return -ENOMEM;
	if (gpu->owner[f])
		return -EBUSY;
	*out = f;
	return 0;
}

/*
 * The frame of a page of an allocation that no memory is behind: counted from
 * SIM_UNBACKED, and nobody's, so that others may have the same.
 */
static int sim_pick_unbacked(u32 layout, const struct sim_alloc *alloc, u32 page)
{
	const u32 per_hole = SZ_2M >> SIM_PAGE_SHIFT;

	switch (layout) {
	case SIM_CONTIGUOUS:
		return page;
	case SIM_DESCENDING:
		return alloc->npages - 1 - page;
	case SIM_HOLES64K:
		return 2 * page;
	case SIM_HOLES2M:
		return page + round_down(page, per_hole);
	default:
		return -EINVAL;
	}
}

static int sim_take_unbacked(struct sim_alloc *alloc)
{
	u32 layout = READ_ONCE(sim_knobs.layout);
	int frame;
	u32 i;

	for (i = 0; i < alloc->npages; i++) {
		frame = sim_pick_unbacked(layout, alloc, i);
		if (frame < 0)
			return frame;
		alloc->frame[i] = frame;
	}
	return 0;
}

/* The first of @n free frames in a row, or where they would be too few. */
static u32 sim_room(const struct sim_gpu *gpu, u32 n)
{
	u32 first = 0, f;

	for (f = 0; f < gpu->nframes && f - first < n; f++)
		if (gpu->owner[f])
			first = f + 1;
	return first;
}

static void sim_release_frames(struct sim_alloc *alloc, u32 n)
{
	if (alloc->unbacked)
		return;
	sim_add(SIM_LIVE_FRAMES, -(s64)n);
	while (n--)
		alloc->gpu->owner[alloc->frame[n]] = NULL;
}

static int sim_take_frames(struct sim_alloc *alloc, bool anywhere)
{
	struct sim_gpu *gpu = alloc->gpu;
	u32 layout = READ_ONCE(sim_knobs.layout);
	u32 hint = anywhere ? sim_room(gpu, alloc->npages) :
			      alloc->offset >> SIM_PAGE_SHIFT;
	u32 i, run = 0;
	int ret;

	if (alloc->unbacked)
		return sim_take_unbacked(alloc);
	for (i = 0; i < alloc->npages; i++) {
		ret = sim_pick(gpu, layout, hint, alloc, i, &run,
			       &alloc->frame[i]);
		if (ret) {
			sim_release_frames(alloc, i);
			return ret;
		}
		gpu->owner[alloc->frame[i]] = alloc;
		sim_add(SIM_LIVE_FRAMES, 1);
	}
	if (anywhere)
		alloc->offset = (u64)alloc->frame[0] << SIM_PAGE_SHIFT;
	return 0;
}

/* The frames of what this process has allocated at the same offset. */
static int sim_borrow_frames(struct sim_alloc *alloc)
{
	struct sim_alloc *first = NULL;

	if (alloc->offset < alloc->gpu->size)
		first = alloc->gpu->owner[alloc->offset >> SIM_PAGE_SHIFT];
	if (!first || first->tgid != alloc->tgid || first->unmapped ||
	    first->state != SIM_ALLOC_LIVE || first->npages != alloc->npages ||
	    (u64)first->frame[0] << SIM_PAGE_SHIFT != alloc->offset)
		return -EINVAL;
	memcpy(alloc->frame, first->frame,
	       alloc->npages * sizeof(*alloc->frame));
	sim_alloc_get(first);
	alloc->coherent = first->coherent;
	alloc->first = first;
	first->lent++;
	return 0;
}

phys_addr_t sim_alloc_phys(const struct sim_alloc *alloc, u32 page)
{
	phys_addr_t base = alloc->unbacked ? SIM_UNBACKED : alloc->gpu->bar;

	if (alloc->coherent)
		return sim_coherent_phys(alloc->gpu, alloc->frame[page]);
	return base + ((u64)alloc->frame[page] << SIM_PAGE_SHIFT);
}

/* Of an allocation that has memory. */
void *sim_alloc_kva(const struct sim_alloc *alloc, u32 page)
{
	if (alloc->coherent)
		return sim_coherent_kva(alloc->gpu, alloc->frame[page]);
	return alloc->gpu->kva + ((u64)alloc->frame[page] << SIM_PAGE_SHIFT);
}

/* ---- room in BAR1 ------------------------------------------------------ */

/*
 * The request must fit whole into what is free. What a pin has in common with
 * earlier ones is then not charged again, and what is not in the BAR, never.
 * gpu->lock is held.
 */
int sim_bar1_map(struct sim_alloc *alloc, u32 first, u32 n)
{
	struct sim_gpu *gpu = alloc->gpu;
	u64 total = READ_ONCE(sim_knobs.bar1_bytes);
	u64 taken = SIM_BAR1_RESERVE + gpu->bar1_used;
	u64 charge = 0;
	u32 i;

	if (alloc->coherent)
		return 0;
	if (taken > total || (u64)n << SIM_PAGE_SHIFT > total - taken)
		return -ENOMEM;

	for (i = first; i < first + n; i++)
		if (!alloc->bar1[i]++)
			charge += SIM_PAGE_SIZE;
	gpu->bar1_used += charge;
	sim_add(SIM_LIVE_BAR1_USED, charge);
	return 0;
}

void sim_bar1_unmap(struct sim_alloc *alloc, u32 first, u32 n)
{
	u64 charge = 0;
	u32 i;

	if (alloc->coherent)
		return;
	for (i = first; i < first + n; i++)
		if (!--alloc->bar1[i])
			charge += SIM_PAGE_SIZE;
	alloc->gpu->bar1_used -= charge;
	sim_add(SIM_LIVE_BAR1_USED, -(s64)charge);
}

/* ---- allocations ------------------------------------------------------- */

static struct sim_alloc *sim_alloc_new(struct sim_gpu *gpu, u64 va, u64 offset,
				       u64 size)
{
	struct sim_alloc *alloc = kzalloc_obj(*alloc);

	if (!alloc)
		return NULL;
	kref_init(&alloc->ref);
	INIT_LIST_HEAD(&alloc->node);
	INIT_LIST_HEAD(&alloc->pins);
	alloc->gpu = gpu;
	alloc->tgid = task_tgid_nr(current);
	alloc->va = va;
	alloc->offset = offset;
	alloc->size = size;
	alloc->unbacked = offset == LAB_GPU_UNBACKED;
	alloc->npages = size >> SIM_PAGE_SHIFT;
	alloc->frame = kvcalloc(alloc->npages, sizeof(*alloc->frame),
				GFP_KERNEL);
	alloc->bar1 = kvcalloc(alloc->npages, sizeof(*alloc->bar1), GFP_KERNEL);
	if (!alloc->frame || !alloc->bar1) {
		sim_alloc_put(alloc);
		return NULL;
	}
	return alloc;
}

static void sim_alloc_destroy(struct kref *ref)
{
	struct sim_alloc *alloc = container_of(ref, struct sim_alloc, ref);

	kvfree(alloc->bar1);
	kvfree(alloc->frame);
	if (alloc->device)
		fput(alloc->device);
	if (alloc->first)
		sim_alloc_put(alloc->first);
	kfree(alloc);
}

void sim_alloc_get(struct sim_alloc *alloc)
{
	kref_get(&alloc->ref);
}

void sim_alloc_put(struct sim_alloc *alloc)
{
	kref_put(&alloc->ref, sim_alloc_destroy);
}

/*
 * The allocation of this process around an address, for as long as gpu->lock
 * is held.
 */
struct sim_alloc *sim_alloc_find(struct sim_gpu *gpu, u64 va)
{
	struct sim_alloc *alloc;
	pid_t tgid = task_tgid_nr(current);

	lockdep_assert_held(&gpu->lock);
	list_for_each_entry(alloc, &gpu->allocs, node)
		if (alloc->tgid == tgid && !alloc->unmapped &&
		    alloc->state == SIM_ALLOC_LIVE &&
		    va >= alloc->va && va - alloc->va < alloc->size)
			return alloc;
	return NULL;
}

/* Whether its munmap, which is to come, frees it under the mmap_lock. */
bool sim_alloc_free_in_close(struct sim_alloc *alloc)
{
	bool mapped;

	mutex_lock(&alloc->gpu->lock);
	mapped = !alloc->unmapped;
	if (mapped)
		alloc->free_in_close = true;
	mutex_unlock(&alloc->gpu->lock);
	return mapped;
}

/* What lies at a physical address, with a reference, or NULL. */
struct sim_alloc *sim_alloc_at(struct sim_gpu *gpu, phys_addr_t phys)
{
	struct sim_alloc *alloc = NULL;

	mutex_lock(&gpu->lock);
	if (gpu->present && phys >= gpu->bar && phys - gpu->bar < gpu->size)
		alloc = gpu->owner[(phys - gpu->bar) >> SIM_PAGE_SHIFT];
	if (!alloc || alloc->coherent)
		alloc = sim_coherent_at(gpu, phys);
	if (alloc)
		sim_alloc_get(alloc);
	mutex_unlock(&gpu->lock);
	return alloc;
}

static void sim_scrub(struct sim_alloc *alloc)
{
	struct sim_gpu *gpu = alloc->gpu;
	u32 i;

	for (i = 0; !alloc->unbacked && i < alloc->npages && READ_ONCE(gpu->present); i++)
		memset(sim_alloc_kva(alloc, i), SIM_SCRUB, SIM_PAGE_SIZE);
}

/* Give the frames back if nothing holds them. The API lock is held. */
void sim_alloc_settle(struct sim_alloc *alloc)
{
	struct sim_alloc *first = alloc->first;
	struct sim_gpu *gpu = alloc->gpu;
	bool last;

	mutex_lock(&gpu->lock);
	last = alloc->state == SIM_ALLOC_GONE && !alloc->npersistent &&
	       !alloc->lent && !list_empty(&alloc->node);
	mutex_unlock(&gpu->lock);
	if (!last)
		return;

	if (!first)
		sim_scrub(alloc);

	mutex_lock(&gpu->lock);
	list_del_init(&alloc->node);
	if (first)
		first->lent--;
	else
		sim_release_frames(alloc, alloc->npages);
	mutex_unlock(&gpu->lock);
	if (alloc->orphan)
		sim_add(SIM_LIVE_ORPHANS, -1);
	if (first)
		sim_alloc_settle(first);
	sim_alloc_put(alloc);
}

void sim_alloc_free(struct sim_alloc *alloc)
{
	struct sim_gpu *gpu = alloc->gpu;
	bool mine;

	/* A callback that drops the last mm of another process gets here. */
	if (sim_api_is_mine()) {
		sim_free_elsewhere(alloc, SIM_FREE_FROM_KTHREAD, false);
		return;
	}

	sim_api_lock_always("a free of GPU memory", true);

	mutex_lock(&gpu->lock);
	mine = alloc->state == SIM_ALLOC_LIVE && !list_empty(&alloc->node);
	if (mine)
		alloc->state = SIM_ALLOC_DYING;
	mutex_unlock(&gpu->lock);
	if (!mine)
		goto out;

	sim_pin_revoke_all(alloc);

	mutex_lock(&gpu->lock);
	alloc->state = SIM_ALLOC_GONE;
	alloc->orphan = alloc->npersistent;
	mutex_unlock(&gpu->lock);

	/*
	 * The fault handler puts nothing back from here on. Whoever else has
	 * mapped the same offset loses his PTEs too, and gets them back at his
	 * next access.
	 */
	unmap_mapping_range(alloc->device->f_mapping, alloc->offset,
			    alloc->size, 1);

	sim_add(SIM_LIVE_ALLOCATIONS, -1);
	sim_add(SIM_FREES, 1);
	if (alloc->orphan)
		sim_add(SIM_LIVE_ORPHANS, 1);
	sim_inject_moot(alloc);
	sim_alloc_settle(alloc);
out:
	sim_api_unlock();
}

/* ---- the CPU's mapping ------------------------------------------------- */

static int sim_handle_release(struct inode *inode, struct file *file)
{
	struct sim_alloc *alloc = file->private_data;

	if (!alloc->queued)
		sim_alloc_free(alloc);
	sim_alloc_put(alloc);
	return 0;
}

static const struct file_operations sim_handle_fops = {
	.owner = THIS_MODULE,
	.release = sim_handle_release,
};

static bool sim_is_elsewhere(u32 from)
{
	return from == SIM_FREE_FROM_KTHREAD || from == SIM_FREE_FROM_PROCESS;
}

static void sim_vma_open(struct vm_area_struct *vma)
{
	struct sim_alloc *alloc = vma->vm_private_data;

	mutex_lock(&alloc->gpu->lock);
	alloc->vmas++;
	mutex_unlock(&alloc->gpu->lock);
}

static void sim_vma_close(struct vm_area_struct *vma)
{
	struct sim_alloc *alloc = vma->vm_private_data;
	struct sim_gpu *gpu = alloc->gpu;
	u32 from = READ_ONCE(sim_knobs.free_from);
	bool last;

	mutex_lock(&gpu->lock);
	last = !--alloc->vmas;
	if (alloc->free_in_close)
		from = SIM_FREE_FROM_CLOSE;
	if (last) {
		alloc->unmapped = true;
		alloc->queued = sim_is_elsewhere(from);
	}
	mutex_unlock(&gpu->lock);
	if (!last)
		return;

	if (from == SIM_FREE_FROM_CLOSE)
		sim_alloc_free(alloc);
	else if (sim_is_elsewhere(from))
		sim_free_elsewhere(alloc, from, false);
	fput(alloc->handle);
}

/* An allocation is mapped whole, where it was, or not at all. */
static int sim_vma_may_split(struct vm_area_struct *vma, unsigned long addr)
{
	return -EINVAL;
}

static int sim_vma_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static vm_fault_t sim_vma_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct sim_alloc *alloc = vma->vm_private_data;
	u32 page = (vmf->address - vma->vm_start) >> SIM_PAGE_SHIFT;
	unsigned long addr = vma->vm_start + ((u64)page << SIM_PAGE_SHIFT);
	unsigned long end = min(addr + SIM_PAGE_SIZE, vma->vm_end);
	vm_fault_t ret = VM_FAULT_SIGBUS;
	unsigned long pfn;

	mutex_lock(&alloc->gpu->lock);
	if (alloc->state != SIM_ALLOC_GONE && !alloc->unbacked) {
		pfn = PHYS_PFN(sim_alloc_phys(alloc, page));
		do {
			ret = vmf_insert_pfn(vma, addr, pfn++);
			addr += PAGE_SIZE;
		} while (ret == VM_FAULT_NOPAGE && addr < end);
	}
	mutex_unlock(&alloc->gpu->lock);
	return ret;
}

static const struct vm_operations_struct sim_vm_ops = {
	.open = sim_vma_open,
	.close = sim_vma_close,
	.may_split = sim_vma_may_split,
	.mremap = sim_vma_mremap,
	.fault = sim_vma_fault,
};

static struct sim_gpu *sim_file_gpu(struct file *file)
{
	return container_of(file->private_data, struct sim_gpu, misc);
}

/* With a reference for the list, and one for the handle. */
static int sim_alloc_add(struct sim_alloc *alloc, u64 where)
{
	struct sim_gpu *gpu = alloc->gpu;
	int ret;

	mutex_lock(&gpu->lock);
	alloc->coherent = gpu->coherent && !alloc->unbacked;
	if (!gpu->present)
		ret = -ENODEV;
	else if (where & LAB_GPU_AGAIN)
		ret = sim_borrow_frames(alloc);
	else
		ret = sim_take_frames(alloc, where & LAB_GPU_ANYWHERE);
	if (!ret) {
		sim_alloc_get(alloc);
		list_add_tail(&alloc->node, &gpu->allocs);
		alloc->vmas = 1;
	}
	mutex_unlock(&gpu->lock);
	return ret;
}

static int sim_mmap(struct file *file, struct vm_area_struct *vma)
{
	const u64 flags = LAB_GPU_ANYWHERE | LAB_GPU_AGAIN | LAB_GPU_NO_P2P;
	struct sim_gpu *gpu = sim_file_gpu(file);
	u64 where = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 offset = where & ~flags;
	u64 size = round_up(vma->vm_end - vma->vm_start, SIM_PAGE_SIZE);
	struct sim_alloc *alloc;
	int ret;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (!IS_ALIGNED(offset, SIM_PAGE_SIZE) ||
	    !IS_ALIGNED(vma->vm_start, SIM_PAGE_SIZE) ||
	    (offset >= gpu->size && offset != LAB_GPU_UNBACKED))
		return -EINVAL;
	if (size > (offset == LAB_GPU_UNBACKED ? SIM_UNBACKED_MAX : gpu->size))
		return -ENOMEM;

	alloc = sim_alloc_new(gpu, vma->vm_start, offset, size);
	if (!alloc)
		return -ENOMEM;
	alloc->no_p2p = where & LAB_GPU_NO_P2P;
	alloc->device = get_file(file);
	alloc->handle = anon_inode_getfile("[nvidia-lab]", &sim_handle_fops,
					   alloc, O_RDWR);
	if (IS_ERR(alloc->handle)) {
		ret = PTR_ERR(alloc->handle);
		sim_alloc_put(alloc);
		return ret;
	}

	ret = sim_alloc_add(alloc, where);
	if (ret) {
		fput(alloc->handle);
		return ret;
	}
	sim_add(SIM_LIVE_ALLOCATIONS, 1);
	sim_add(SIM_ALLOCATIONS, 1);

	vma->vm_pgoff = alloc->offset >> PAGE_SHIFT;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND |
			  VM_DONTDUMP);
	vma->vm_private_data = alloc;
	vma->vm_ops = &sim_vm_ops;
	return 0;
}

/* GPU addresses start at 64 KiB, those of large allocations at 2 MiB. */
static unsigned long sim_get_unmapped_area(struct file *file,
					   unsigned long addr,
					   unsigned long len,
					   unsigned long pgoff,
					   unsigned long flags)
{
	unsigned long align = len >= SZ_2M ? SZ_2M : SIM_PAGE_SIZE;
	unsigned long padded;

	if (flags & MAP_FIXED)
		return addr;
	if (check_add_overflow(len, align, &padded))
		return -ENOMEM;

	addr = mm_get_unmapped_area(file, 0, padded, pgoff, flags);
	return IS_ERR_VALUE(addr) ? addr : ALIGN(addr, align);
}

/* ---- ioctl ------------------------------------------------------------- */

static long sim_ioctl_free(struct sim_gpu *gpu, void __user *argp)
{
	struct sim_call call = sim_clock_start(SIM_FREE_MEMORY);
	u32 from = READ_ONCE(sim_knobs.free_from);
	struct lab_gpu_free arg;
	struct sim_alloc *alloc;

	if (copy_from_user(&arg, argp, sizeof(arg)))
		return -EFAULT;

	mutex_lock(&gpu->lock);
	alloc = sim_alloc_find(gpu, arg.addr);
	if (alloc && alloc->va != arg.addr)
		alloc = NULL;
	if (alloc)
		sim_alloc_get(alloc);
	mutex_unlock(&gpu->lock);
	if (!alloc)
		return -EINVAL;

	if (sim_is_elsewhere(from))
		sim_free_elsewhere(alloc, from, true);
	else
		sim_alloc_free(alloc);
	sim_alloc_put(alloc);
	sim_clock_stop(&call);
	return 0;
}

static long sim_ioctl_copy(struct sim_gpu *gpu, void __user *argp)
{
	struct lab_gpu_copy arg;

	if (copy_from_user(&arg, argp, sizeof(arg)))
		return -EFAULT;
	return sim_copy(gpu, &arg);
}

static long sim_ioctl_query(struct sim_gpu *gpu, void __user *argp)
{
	struct lab_gpu_query arg;
	struct sim_alloc *alloc;
	long ret = -EINVAL;

	if (copy_from_user(&arg, argp, sizeof(arg)))
		return -EFAULT;

	mutex_lock(&gpu->lock);
	alloc = sim_alloc_find(gpu, arg.addr);
	if (alloc && arg.index >= alloc->npages) {
		ret = -ERANGE;
	} else if (alloc) {
		arg.start = alloc->va;
		arg.size = alloc->size;
		arg.bar_offset = (u64)alloc->frame[arg.index] << SIM_PAGE_SHIFT;
		arg.pins = alloc->npins;
		arg.persistent_pins = alloc->npersistent;
		ret = 0;
	}
	mutex_unlock(&gpu->lock);

	if (!ret && copy_to_user(argp, &arg, sizeof(arg)))
		ret = -EFAULT;
	return ret;
}

static long sim_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct sim_gpu *gpu = sim_file_gpu(file);

	switch (cmd) {
	case LAB_GPU_FREE:
		return sim_ioctl_free(gpu, (void __user *)arg);
	case LAB_GPU_INJECTOR:
		return sim_injector();
	case LAB_GPU_QUERY:
		return sim_ioctl_query(gpu, (void __user *)arg);
	case LAB_GPU_COPY:
		return sim_ioctl_copy(gpu, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

const struct file_operations sim_device_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.mmap = sim_mmap,
	.get_unmapped_area = sim_get_unmapped_area,
	.unlocked_ioctl = sim_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
