// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A second client of the NVIDIA driver, beside nv_peer_mem: it pins GPU memory and
 * maps it for the CPU, as gdrcopy's driver does. Of /dev/cpumap
 *
 *   open	is for one pin
 *   write	of two words, address and size in bytes, pins that range
 *   mmap	maps any part of it, counted from its beginning
 *   close	unpins it, when it is not mapped any more
 *
 * When the memory is freed its mapping stays, and whoever touches that gets SIGBUS. A
 * page is mapped when it is touched.
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

struct cpumap {
	struct kref ref;	/* the file, and the callback until it has come */
	struct mutex lock;
	bool revoked;		/* the callback has come; under the lock, as the next */
	struct nvidia_p2p_page_table *table;	/* while pinned */
	u64 addr;
};

/* Of the device, for every file. */
static struct address_space *cpumap_mapping;

static void cpumap_free(struct kref *ref)
{
	kfree(container_of(ref, struct cpumap, ref));
}

/*
 * The driver frees the table when this returns. Others' mappings lose their pages too,
 * and get them back at the next access.
 */
static void cpumap_revoke(void *data)
{
	struct cpumap *map = data;

	mutex_lock(&map->lock);
	map->table = NULL;
	map->revoked = true;
	unmap_mapping_range(cpumap_mapping, 0, 0, 1);
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
	file->private_data = map;
	cpumap_mapping = inode->i_mapping;
	return 0;
}

static ssize_t cpumap_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	struct cpumap *map = file->private_data;
	struct nvidia_p2p_page_table *table;
	u64 range[2];
	int ret;

	if (map->addr || size != sizeof(range) || copy_from_user(range, from, size))
		return -EINVAL;
	map->addr = range[0];
	kref_get(&map->ref);
	ret = nvidia_p2p_get_pages(0, 0, range[0], range[1], &table, cpumap_revoke, map);
	if (ret) {
		kref_put(&map->ref, cpumap_free);
		return ret;
	}
	/* The memory may have been freed before the driver had even returned. */
	mutex_lock(&map->lock);
	if (!map->revoked)
		map->table = table;
	mutex_unlock(&map->lock);
	return size;
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

/* After a put the callback has come, or will not; a put after the callback could meet another's table. */
static int cpumap_release(struct inode *inode, struct file *file)
{
	struct cpumap *map = file->private_data;
	struct nvidia_p2p_page_table *table;

	mutex_lock(&map->lock);
	table = map->table;
	map->table = NULL;
	mutex_unlock(&map->lock);
	if (table) {
		nvidia_p2p_put_pages(0, 0, map->addr, table);
		if (!map->revoked)
			kref_put(&map->ref, cpumap_free);
	}
	kref_put(&map->ref, cpumap_free);
	return 0;
}

static const struct file_operations cpumap_fops = {
	.owner = THIS_MODULE,
	.open = cpumap_open,
	.write = cpumap_write,
	.mmap = cpumap_mmap,
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
