// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A second client of the NVIDIA driver, beside nv_peer_mem: it pins GPU memory and
 * maps it for the CPU, as gdrcopy's driver does.
 *
 *   open	/dev/cpumap: for one pin
 *   ioctl	CPUMAP_PIN (cpumap.h) pins a range
 *   mmap	of any part of it, counted from its beginning
 *   close	unpins it; so does the end of the process, which must be the one that pinned it
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
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <nv-p2p.h>

#include "../compat.h"
#include "cpumap.h"

struct cpumap {
	struct kref ref;	/* the file, and the callback until it has come */
	struct mutex lock;
	bool revoked;		/* the callback has come; under the lock, as the next */
	struct nvidia_p2p_page_table *table;	/* while pinned */
	struct file *file;
	u64 addr;		/* set by the ioctl, once */
};

static void cpumap_free(struct kref *ref)
{
	kfree(container_of(ref, struct cpumap, ref));
}

/*
 * From here on the pages are reached by nobody. Others' mappings, of the same
 * device, lose theirs too, and get them back at the next access. map->lock is held.
 */
static struct nvidia_p2p_page_table *cpumap_end(struct cpumap *map)
{
	struct nvidia_p2p_page_table *table = map->table;

	map->table = NULL;
	if (map->file)
		unmap_mapping_range(map->file->f_mapping, 0, 0, 1);
	return table;
}

/* The driver frees the table when this returns. */
static void cpumap_revoke(void *data)
{
	struct cpumap *map = data;

	mutex_lock(&map->lock);
	cpumap_end(map);
	map->revoked = true;
	mutex_unlock(&map->lock);
	kref_put(&map->ref, cpumap_free);
}

static int cpumap_open(struct inode *inode, struct file *file)
{
	struct cpumap *map = kzalloc_obj(*map);

	if (!map)
		return -ENOMEM;
	kref_init(&map->ref);
	mutex_init(&map->lock);
	map->file = file;
	file->private_data = map;
	return nonseekable_open(inode, file);
}

static long cpumap_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct cpumap *map = file->private_data;
	struct nvidia_p2p_page_table *table;
	struct cpumap_range range;
	int ret;

	if (cmd != CPUMAP_PIN)
		return -ENOTTY;
	if (map->addr)
		return -EBUSY;
	if (copy_from_user(&range, (void __user *)arg, sizeof(range)))
		return -EFAULT;
	map->addr = range.addr;
	kref_get(&map->ref);
	ret = nvidia_p2p_get_pages(0, 0, range.addr, range.size, &table, cpumap_revoke, map);
	if (ret) {
		kref_put(&map->ref, cpumap_free);
		return ret;
	}
	/* The memory may have been freed before the driver had even returned. */
	mutex_lock(&map->lock);
	if (map->revoked)
		ret = -EINVAL;
	else
		map->table = table;
	mutex_unlock(&map->lock);
	return ret;
}

static vm_fault_t cpumap_fault(struct vm_fault *vmf)
{
	struct cpumap *map = vmf->vma->vm_private_data;
	u64 at = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	mutex_lock(&map->lock);
	if (map->table && at / SZ_64K < map->table->entries)
		ret = vmf_insert_pfn(vmf->vma, vmf->address,
				     PHYS_PFN(map->table->pages[at / SZ_64K]->physical_address + at % SZ_64K));
	mutex_unlock(&map->lock);
	return ret;
}

static const struct vm_operations_struct cpumap_vm_ops = {
	.fault = cpumap_fault,
};

static int cpumap_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = file->private_data;
	vma->vm_ops = &cpumap_vm_ops;
	return 0;
}

/*
 * A put that comes after the callback does nothing; after either, the callback runs
 * no more. A mapping holds the file, so what is mapped ends at each close, of the one
 * descriptor that there is.
 */
static int cpumap_flush(struct file *file, fl_owner_t id)
{
	struct cpumap *map = file->private_data;
	struct nvidia_p2p_page_table *table;

	mutex_lock(&map->lock);
	table = cpumap_end(map);
	mutex_unlock(&map->lock);
	if (!table)
		return 0;
	nvidia_p2p_put_pages(0, 0, map->addr, table);
	mutex_lock(&map->lock);
	if (!map->revoked)
		kref_put(&map->ref, cpumap_free);
	mutex_unlock(&map->lock);
	return 0;
}

static int cpumap_release(struct inode *inode, struct file *file)
{
	struct cpumap *map = file->private_data;

	mutex_lock(&map->lock);
	map->file = NULL;
	mutex_unlock(&map->lock);
	kref_put(&map->ref, cpumap_free);
	return 0;
}

static const struct file_operations cpumap_fops = {
	.owner = THIS_MODULE,
	.open = cpumap_open,
	.unlocked_ioctl = cpumap_ioctl,
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
