// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory: allocating it, mapping it for the CPU, freeing it.
 *
 * The replacement for cudaMalloc and cudaFree. Memory is handed out in 64 KiB frames of the
 * BAR, to one process (by tgid), with its old contents. The mapping has raw page frames, so
 * get_user_pages refuses it, like an address that only the GPU knows.
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
 *   process  in a task of another process that waits in LAB_GPU_INJECTOR; otherwise
 *            like kthread.
 *
 * For `task`, each allocation has a file of its own: the kernel defers the last fput() to a
 * moment without locks, and until then the file holds this module.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "sim.h"

/* ---- frames ------------------------------------------------------------ */

/* Returns the distance of a page from the first frame, in the requested layout. */
static u64 sim_place(enum sim_layout layout, u32 npages, u32 page)
{
	switch (layout) {
	case SIM_descending:
		return npages - 1 - page;
	case SIM_holes64k:
		return 2ULL * page;
	case SIM_holes2m:
		return page + round_down(page, SZ_2M >> SIM_PAGE_SHIFT);
	default:
		return page;
	}
}

/* Fragmented memory: three of four pages follow their predecessor, the others lie anywhere. */
static u64 sim_place_at_random(const struct sim_alloc *alloc, u32 page)
{
	u64 f = page ? alloc->frame[page - 1] + 1 : sim_gpu.nframes;
	u32 i;

	if (f < sim_gpu.nframes && !sim_gpu.owner[f] && sim_random() % 4)
		return f;
	f = sim_random();
	for (i = 0; i < sim_gpu.nframes; i++, f++)
		if (!sim_gpu.owner[f % sim_gpu.nframes])
			return f % sim_gpu.nframes;
	return sim_gpu.nframes;
}

/* Returns the first of @n free frames in a row, or a frame that fewer than @n frames follow. */
static u32 sim_room(u32 n)
{
	u32 first = 0, f;

	for (f = 0; f < sim_gpu.nframes && f - first < n; f++)
		if (sim_gpu.owner[f])
			first = f + 1;
	return first;
}

static void sim_release_frames(struct sim_alloc *alloc, u32 n)
{
	if (alloc->unbacked)
		return;
	while (n--)
		sim_gpu.owner[alloc->frame[n]] = NULL;
}

/* Takes frames. Memory without backing has frames without an owner, which may be shared. */
static int sim_take_frames(struct sim_alloc *alloc, bool anywhere)
{
	u32 first = anywhere ? sim_room(alloc->npages) : alloc->offset >> SIM_PAGE_SHIFT;
	enum sim_layout layout = sim_knob(layout);
	u32 i;
	u64 f;

	if (alloc->unbacked)
		first = 0;
	for (i = 0; i < alloc->npages; i++) {
		if (layout == SIM_fragmented && !alloc->unbacked)
			f = sim_place_at_random(alloc, i);
		else
			f = first + sim_place(layout, alloc->npages, i);
		if (!alloc->unbacked && (f >= sim_gpu.nframes || sim_gpu.owner[f])) {
			sim_release_frames(alloc, i);
			return f >= sim_gpu.nframes ? -ENOMEM : -EBUSY;
		}
		alloc->frame[i] = f;
		if (!alloc->unbacked)
			sim_gpu.owner[f] = alloc;
	}
	if (anywhere)
		alloc->offset = (u64)alloc->frame[0] << SIM_PAGE_SHIFT;
	return 0;
}

phys_addr_t sim_alloc_phys(const struct sim_alloc *alloc, u32 page)
{
	phys_addr_t base = alloc->unbacked ? SIM_UNBACKED : sim_gpu.bar;

	if (alloc->coherent)
		return page_to_phys(sim_gpu.ram[alloc->frame[page]]);
	return base + ((u64)alloc->frame[page] << SIM_PAGE_SHIFT);
}

/* Returns a kernel address in an allocation with memory. */
static void *sim_alloc_kva(const struct sim_alloc *alloc, u32 page)
{
	if (alloc->coherent)
		return page_address(sim_gpu.ram[alloc->frame[page]]);
	return sim_gpu.kva + ((u64)alloc->frame[page] << SIM_PAGE_SHIFT);
}

/* ---- allocations ------------------------------------------------------- */

static struct sim_alloc *sim_alloc_new(u64 va, u64 offset, u64 size)
{
	struct sim_alloc *alloc = kzalloc_obj(*alloc);

	if (!alloc)
		return NULL;
	kref_init(&alloc->ref);
	INIT_LIST_HEAD(&alloc->node);
	INIT_LIST_HEAD(&alloc->pins);
	INIT_LIST_HEAD(&alloc->extents[false]);
	INIT_LIST_HEAD(&alloc->extents[true]);
	alloc->tgid = task_tgid_nr(current);
	alloc->va = va;
	alloc->offset = offset;
	alloc->size = size;
	alloc->unbacked = offset == LAB_GPU_UNBACKED;
	alloc->coherent = sim_knob(coherent) && !alloc->unbacked;
	alloc->npages = size >> SIM_PAGE_SHIFT;
	alloc->vmas = 1;
	alloc->frame = kvcalloc(alloc->npages, sizeof(*alloc->frame), GFP_KERNEL);
	if (!alloc->frame) {
		sim_alloc_put(alloc);
		return NULL;
	}
	return alloc;
}

static void sim_alloc_destroy(struct kref *ref)
{
	struct sim_alloc *alloc = container_of(ref, struct sim_alloc, ref);

	kvfree(alloc->frame);
	if (alloc->device)
		fput(alloc->device);
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

/* Returns the allocation of this process around an address. gpu.lock is held. */
struct sim_alloc *sim_alloc_find(u64 va)
{
	struct sim_alloc *alloc;

	lockdep_assert_held(&sim_gpu.lock);
	list_for_each_entry(alloc, &sim_gpu.allocs, node)
		if (alloc->tgid == task_tgid_nr(current) && !alloc->unmapped &&
		    alloc->state == SIM_ALLOC_LIVE && va - alloc->va < alloc->size)
			return alloc;
	return NULL;
}

/* Returns the allocation of this process around an address, with a reference. */
struct sim_alloc *sim_alloc_of(u64 va)
{
	struct sim_alloc *alloc;

	guard(mutex)(&sim_gpu.lock);
	alloc = sim_alloc_find(va);
	if (alloc)
		sim_alloc_get(alloc);
	return alloc;
}

/* Tells whether a later munmap frees the allocation under the mmap_lock. */
bool sim_alloc_free_in_close(struct sim_alloc *alloc)
{
	guard(mutex)(&sim_gpu.lock);
	alloc->free_in_close = !alloc->unmapped;
	return alloc->free_in_close;
}

/* Returns the allocation at a physical address, with a reference, or NULL. */
struct sim_alloc *sim_alloc_at(phys_addr_t phys)
{
	bool in_bar = phys - sim_gpu.bar < sim_gpu.size;
	struct sim_alloc *alloc;
	u32 frame;

	if (!in_bar && !READ_ONCE(sim_gpu.ram))
		return NULL;
	guard(mutex)(&sim_gpu.lock);
	frame = in_bar ? (phys - sim_gpu.bar) >> SIM_PAGE_SHIFT : sim_coherent_frame(phys);
	alloc = frame < sim_gpu.nframes ? sim_gpu.owner[frame] : NULL;
	if (!alloc || alloc->coherent == in_bar)
		return NULL;
	sim_alloc_get(alloc);
	return alloc;
}

/* Gives the frames back if nothing holds them. The API lock is held. */
void sim_alloc_settle(struct sim_alloc *alloc)
{
	u32 i;

	mutex_lock(&sim_gpu.lock);
	if (alloc->state != SIM_ALLOC_GONE || alloc->npersistent || list_empty(&alloc->node)) {
		mutex_unlock(&sim_gpu.lock);
		return;
	}
	list_del_init(&alloc->node);
	mutex_unlock(&sim_gpu.lock);

	/* A new owner of memory finds no data of the old owner. */
	for (i = 0; !alloc->unbacked && i < alloc->npages; i++)
		memset(sim_alloc_kva(alloc, i), SIM_SCRUB, SIM_PAGE_SIZE);

	mutex_lock(&sim_gpu.lock);
	sim_release_frames(alloc, alloc->npages);
	mutex_unlock(&sim_gpu.lock);
	sim_add(SIM_live_orphans, -(s64)alloc->orphan);
	sim_alloc_put(alloc);
}

void sim_alloc_free(struct sim_alloc *alloc)
{
	bool mine;

	/* The API lock is this task's own if a callback drops the last mm of another process. */
	if (sim_api_is_mine()) {
		sim_free_elsewhere(alloc, SIM_kthread, false);
		return;
	}

	sim_api_lock_always("a free of GPU memory", true);

	mutex_lock(&sim_gpu.lock);
	mine = alloc->state == SIM_ALLOC_LIVE && !list_empty(&alloc->node);
	if (mine)
		alloc->state = SIM_ALLOC_DYING;
	mutex_unlock(&sim_gpu.lock);
	if (!mine)
		goto out;

	sim_pin_revoke_all(alloc);

	mutex_lock(&sim_gpu.lock);
	alloc->state = SIM_ALLOC_GONE;
	alloc->orphan = alloc->npersistent;
	mutex_unlock(&sim_gpu.lock);

	/*
	 * From here on the fault handler maps nothing any more. Another process
	 * that has mapped the same offset also loses its PTEs, and gets them
	 * back at its next access.
	 */
	unmap_mapping_range(alloc->device->f_mapping, alloc->offset,
			    alloc->size, 1);

	sim_add(SIM_live_allocations, -1);
	sim_add(SIM_frees, 1);
	sim_add(SIM_live_orphans, alloc->orphan);
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

static bool sim_is_elsewhere(enum sim_freer from)
{
	return from == SIM_kthread || from == SIM_process;
}

static void sim_vma_open(struct vm_area_struct *vma)
{
	struct sim_alloc *alloc = vma->vm_private_data;

	guard(mutex)(&sim_gpu.lock);
	alloc->vmas++;
}

static void sim_vma_close(struct vm_area_struct *vma)
{
	struct sim_alloc *alloc = vma->vm_private_data;
	enum sim_freer from = sim_knob(free_from);
	bool last;

	mutex_lock(&sim_gpu.lock);
	last = !--alloc->vmas;
	if (alloc->free_in_close)
		from = SIM_close;
	if (last) {
		alloc->unmapped = true;
		alloc->queued = sim_is_elsewhere(from);
	}
	mutex_unlock(&sim_gpu.lock);
	if (!last)
		return;

	if (from == SIM_close)
		sim_alloc_free(alloc);
	else if (sim_is_elsewhere(from))
		sim_free_elsewhere(alloc, from, false);
	fput(alloc->handle);
}

/* Refuses to split a mapping: an allocation is mapped whole, at its address, or not at all. */
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
	unsigned long pfn = PHYS_PFN(sim_alloc_phys(alloc, page));
	vm_fault_t ret;

	guard(mutex)(&sim_gpu.lock);
	if (alloc->state == SIM_ALLOC_GONE || alloc->unbacked)
		return VM_FAULT_SIGBUS;
	do {
		ret = vmf_insert_pfn(vma, addr, pfn++);
		addr += PAGE_SIZE;
	} while (ret == VM_FAULT_NOPAGE && addr < end);
	return ret;
}

/*
 * Copies as the GPU's copy engine does. /proc/self/mem calls this function also for memory that a
 * program has mapped without access for the CPU.
 */
static int sim_vma_access(struct vm_area_struct *vma, unsigned long addr, void *buffer, int n,
			  int write)
{
	struct sim_alloc *alloc = vma->vm_private_data;
	u64 at = addr - vma->vm_start;
	void *p;

	guard(mutex)(&sim_gpu.lock);
	if (alloc->state == SIM_ALLOC_GONE || alloc->unbacked)
		return -EFAULT;
	p = sim_alloc_kva(alloc, at >> SIM_PAGE_SHIFT) + at % SIM_PAGE_SIZE;
	n = min_t(u64, n, SIM_PAGE_SIZE - at % SIM_PAGE_SIZE);
	memcpy(write ? p : buffer, write ? buffer : p, n);
	return n;
}

static const struct vm_operations_struct sim_vm_ops = {
	.open = sim_vma_open,
	.close = sim_vma_close,
	.may_split = sim_vma_may_split,
	.mremap = sim_vma_mremap,
	.fault = sim_vma_fault,
	.access = sim_vma_access,
};

/* Adds an allocation, with a reference for the list and a reference for the handle. */
static int sim_alloc_add(struct sim_alloc *alloc, bool anywhere)
{
	int ret = 0;

	guard(mutex)(&sim_gpu.lock);
	if (alloc->coherent)
		ret = sim_coherent_take(sim_knob(coherent) == 2);
	if (!ret)
		ret = sim_take_frames(alloc, anywhere);
	if (!ret) {
		sim_alloc_get(alloc);
		list_add_tail(&alloc->node, &sim_gpu.allocs);
	}
	return ret;
}

static int sim_mmap(struct file *file, struct vm_area_struct *vma)
{
	u64 where = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 offset = where & ~(LAB_GPU_ANYWHERE | LAB_GPU_NO_P2P);
	u64 size = round_up(vma->vm_end - vma->vm_start, SIM_PAGE_SIZE);
	struct sim_alloc *alloc;
	int ret;

	if (!(vma->vm_flags & VM_MAYSHARE) ||
	    !IS_ALIGNED(offset | vma->vm_start, SIM_PAGE_SIZE) ||
	    (offset >= sim_gpu.size && offset != LAB_GPU_UNBACKED))
		return -EINVAL;
	if (size > (offset == LAB_GPU_UNBACKED ? SIM_UNBACKED_MAX : sim_gpu.size))
		return -ENOMEM;

	alloc = sim_alloc_new(vma->vm_start, offset, size);
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
	ret = sim_alloc_add(alloc, where & LAB_GPU_ANYWHERE);
	if (ret) {
		fput(alloc->handle);
		return ret;
	}
	sim_add(SIM_live_allocations, 1);

	vma->vm_pgoff = alloc->offset >> PAGE_SHIFT;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND |
			  VM_DONTDUMP);
	vma->vm_private_data = alloc;
	vma->vm_ops = &sim_vm_ops;
	return 0;
}

/* Aligns addresses as the GPU does: to 64 KiB, for large allocations to 2 MiB. */
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

static long sim_ioctl_free(u64 addr)
{
	struct sim_call call = sim_enter(SIM_free_memory);
	enum sim_freer from = sim_knob(free_from);
	struct sim_alloc *alloc = sim_alloc_of(addr);

	if (!alloc)
		return -EINVAL;

	if (sim_is_elsewhere(from))
		sim_free_elsewhere(alloc, from, true);
	else
		sim_alloc_free(alloc);
	sim_alloc_put(alloc);
	sim_leave(&call);
	return 0;
}

static long sim_ioctl_pins(u64 addr)
{
	struct sim_alloc *alloc;

	guard(mutex)(&sim_gpu.lock);
	alloc = sim_alloc_find(addr);
	return alloc ? alloc->npins + alloc->npersistent : -EINVAL;
}

static long sim_ioctl_export(const void __user *arg)
{
	struct lab_gpu_range range;

	if (copy_from_user(&range, arg, sizeof(range)))
		return -EFAULT;
	return sim_export(range.addr, range.size);
}

static long sim_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct lab_gpu_address address;

	if (cmd == LAB_GPU_INJECTOR)
		return sim_injector();
	if (cmd == LAB_GPU_EXPORT)
		return sim_ioctl_export((const void __user *)arg);
	if (cmd != LAB_GPU_FREE && cmd != LAB_GPU_PINS)
		return -ENOTTY;
	if (copy_from_user(&address, (void __user *)arg, sizeof(address)))
		return -EFAULT;
	return cmd == LAB_GPU_FREE ? sim_ioctl_free(address.addr) : sim_ioctl_pins(address.addr);
}

const struct file_operations sim_device_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.mmap = sim_mmap,
	.get_unmapped_area = sim_get_unmapped_area,
	.unlocked_ioctl = sim_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
