// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A second client of the NVIDIA driver, beside nv_peer_mem: it pins GPU memory and
 * maps it for the CPU, as gdrcopy's driver does.
 *
 *   open	/dev/cpumap: one pin for each time
 *   ioctl	CPUMAP_PIN (cpumap.h) pins a range
 *   mmap	of any part of it, counted from its beginning
 *   close	by the process that pinned it unpins it; so does its end
 *
 * When the memory is freed its mapping stays, and whoever touches that gets
 * SIGBUS. A page is mapped when it is touched, with the caching that the NVIDIA
 * driver has chosen for it.
 *
 * The driver calls back under a lock of its own, which getting and putting pages
 * take as well. So map->lock, which the callback takes, is never held around those.
 */
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <nv-p2p.h>

#include "../compat.h"
#include "cpumap.h"

enum cpumap_state {
	CPUMAP_NEW,
	CPUMAP_PINNING,
	CPUMAP_PINNED,
	CPUMAP_REVOKED,		/* the callback has come */
	CPUMAP_OVER,
};

struct cpumap {
	struct kref ref;	/* the file, and the callback until it has come */
	struct mutex lock;	/* all below, but what is set once */
	enum cpumap_state state;
	struct nvidia_p2p_page_table *table;	/* while pinned */
	struct address_space *mapping;		/* of the device, while open */
	u64 addr;		/* set once */
	pid_t tgid;		/* likewise: only the owner may put the pages */
};

static void cpumap_free(struct kref *ref)
{
	kfree(container_of(ref, struct cpumap, ref));
}

static void cpumap_put(struct cpumap *map)
{
	kref_put(&map->ref, cpumap_free);
}

/*
 * From here on the pages are reached by nobody. Others' mappings, of the same
 * device, lose theirs too, and get them back at the next access. map->lock is held.
 */
static void cpumap_end(struct cpumap *map, enum cpumap_state how)
{
	map->state = how;
	map->table = NULL;
	if (map->mapping)
		unmap_mapping_range(map->mapping, 0, 0, 1);
}

/* The driver frees the table when this returns. */
static void cpumap_revoke(void *data)
{
	struct cpumap *map = data;

	mutex_lock(&map->lock);
	cpumap_end(map, CPUMAP_REVOKED);
	mutex_unlock(&map->lock);
	cpumap_put(map);
}

/*
 * Puts the pages, or finds that the driver has taken them. A put that comes after
 * the callback does nothing; after either, the callback runs no more.
 */
static void cpumap_unpin(struct cpumap *map)
{
	struct nvidia_p2p_page_table *table;
	bool revoked;

	mutex_lock(&map->lock);
	table = map->table;
	if (table)
		cpumap_end(map, CPUMAP_OVER);
	mutex_unlock(&map->lock);
	if (!table)
		return;

	nvidia_p2p_put_pages(0, 0, map->addr, table);

	mutex_lock(&map->lock);
	revoked = map->state == CPUMAP_REVOKED;
	mutex_unlock(&map->lock);
	if (!revoked)
		cpumap_put(map);
}

static bool cpumap_usable(const struct nvidia_p2p_page_table *table)
{
	return NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table) &&
	       table->page_size == NVIDIA_P2P_PAGE_SIZE_64KB;
}

/* The memory may be freed before the driver has even returned. */
static int cpumap_pinned(struct cpumap *map, struct nvidia_p2p_page_table *table)
{
	int ret = -EINVAL;

	mutex_lock(&map->lock);
	if (map->state == CPUMAP_PINNING) {
		map->state = CPUMAP_PINNED;
		map->table = table;
		ret = cpumap_usable(table) ? 0 : -EOPNOTSUPP;
	}
	mutex_unlock(&map->lock);
	if (ret)
		cpumap_unpin(map);
	return ret;
}

static int cpumap_pin(struct cpumap *map, const struct cpumap_range *range)
{
	struct nvidia_p2p_page_table *table;
	bool first;
	int ret;

	mutex_lock(&map->lock);
	first = map->state == CPUMAP_NEW;
	if (first)
		map->state = CPUMAP_PINNING;
	mutex_unlock(&map->lock);
	if (!first)
		return -EBUSY;

	map->addr = range->addr;
	kref_get(&map->ref);
	ret = nvidia_p2p_get_pages(0, 0, range->addr, range->size, &table,
				   cpumap_revoke, map);
	if (ret) {
		mutex_lock(&map->lock);
		map->state = CPUMAP_OVER;
		mutex_unlock(&map->lock);
		cpumap_put(map);
		return ret;
	}
	return cpumap_pinned(map, table);
}

/* ---- the file ------------------------------------------------------------- */

static int cpumap_open(struct inode *inode, struct file *file)
{
	struct cpumap *map = kzalloc_obj(*map);

	if (!map)
		return -ENOMEM;
	kref_init(&map->ref);
	mutex_init(&map->lock);
	map->tgid = task_tgid_nr(current);
	map->mapping = file->f_mapping;
	file->private_data = map;
	return nonseekable_open(inode, file);
}

static long cpumap_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct cpumap *map = file->private_data;
	struct cpumap_range range;

	if (cmd != CPUMAP_PIN)
		return -ENOTTY;
	if (map->tgid != task_tgid_nr(current))
		return -EPERM;
	if (copy_from_user(&range, (void __user *)arg, sizeof(range)))
		return -EFAULT;
	return cpumap_pin(map, &range);
}

static vm_fault_t cpumap_fault(struct vm_fault *vmf)
{
	struct cpumap *map = vmf->vma->vm_private_data;
	u64 at = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 phys;

	mutex_lock(&map->lock);
	if (map->state == CPUMAP_PINNED && at / SZ_64K < map->table->entries) {
		phys = map->table->pages[at / SZ_64K]->physical_address;
		ret = vmf_insert_pfn(vmf->vma, vmf->address,
				     PHYS_PFN(phys + at % SZ_64K));
	}
	mutex_unlock(&map->lock);
	return ret;
}

static const struct vm_operations_struct cpumap_vm_ops = {
	.fault = cpumap_fault,
};

static int cpumap_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct cpumap *map = file->private_data;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (map->tgid != task_tgid_nr(current))
		return -EPERM;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND |
			  VM_DONTDUMP);
	vma->vm_private_data = map;
	vma->vm_ops = &cpumap_vm_ops;
	return 0;
}

/*
 * At each close() of a descriptor, since the last one may be that of a child that
 * has inherited it, which can put nothing.
 */
static int cpumap_flush(struct file *file, fl_owner_t id)
{
	struct cpumap *map = file->private_data;

	if (map->tgid == task_tgid_nr(current))
		cpumap_unpin(map);
	return 0;
}

static int cpumap_release(struct inode *inode, struct file *file)
{
	struct cpumap *map = file->private_data;

	/* What another thread has pinned during the close. */
	cpumap_flush(file, NULL);
	mutex_lock(&map->lock);
	map->mapping = NULL;
	mutex_unlock(&map->lock);
	cpumap_put(map);
	return 0;
}

static const struct file_operations cpumap_fops = {
	.owner = THIS_MODULE,
	.open = cpumap_open,
	.unlocked_ioctl = cpumap_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = cpumap_mmap,
	.flush = cpumap_flush,
	.release = cpumap_release,
};

static struct miscdevice cpumap_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "cpumap",
	.fops = &cpumap_fops,
	.mode = 0666,
};

module_misc_device(cpumap_device);

MODULE_DESCRIPTION("GPU memory for the CPU, as a second client of the NVIDIA driver");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("Dual BSD/GPL");
