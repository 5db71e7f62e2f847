// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A second client of the NVIDIA driver: pins GPU memory and maps it for the CPU, as gdrcopy's
 * driver does. It has one pin at a time. Operations of /dev/cpumap:
 *
 *   write	two words, address and size in bytes: pins that range
 *   mmap	maps the range from its beginning
 *   close	unpins the range, when it is not mapped any more
 *
 * When the memory is freed, its mapping stays, and a process that touches it gets SIGBUS.
 *
 * The driver calls back under its own lock, which is also taken when pages are got and put.
 * So cpumap_lock, which the callback takes, is never held around such calls.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include <nv-p2p.h>

static DEFINE_MUTEX(cpumap_lock);	/* protects the next three */
static struct nvidia_p2p_page_table *cpumap_table;	/* while pinned */
static bool cpumap_revoked;
static struct address_space *cpumap_pages;
static u64 cpumap_addr;

/* Takes the pages from the mapping. The driver frees the table when this function returns. */
static void cpumap_revoke(void *data)
{
	mutex_lock(&cpumap_lock);
	cpumap_table = NULL;
	cpumap_revoked = true;
	unmap_mapping_range(cpumap_pages, 0, 0, 1);
	mutex_unlock(&cpumap_lock);
}

static ssize_t cpumap_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	struct nvidia_p2p_page_table *table;
	u64 range[2];
	int ret;

	if (cpumap_table || size != sizeof(range) || copy_from_user(range, from, size))
		return -EINVAL;
	cpumap_addr = range[0];
	cpumap_revoked = false;
	cpumap_pages = file->f_mapping;
	ret = nvidia_p2p_get_pages(0, 0, range[0], range[1], &table, cpumap_revoke, NULL);
	if (ret)
		return ret;
	/*
	 * The memory may have been freed, and the callback may have run, before the driver's
	 * function returned.
	 */
	mutex_lock(&cpumap_lock);
	if (!cpumap_revoked)
		cpumap_table = table;
	mutex_unlock(&cpumap_lock);
	return size;
}

/* There is no fault handler, so an access to a page that was taken away causes SIGBUS. */
static const struct vm_operations_struct cpumap_vm_ops = {};

static int cpumap_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long i, pages = vma_pages(vma) * PAGE_SIZE / SZ_64K;
	int ret = -EINVAL;

	vma->vm_ops = &cpumap_vm_ops;
	mutex_lock(&cpumap_lock);
	if (cpumap_table && pages <= cpumap_table->entries)
		ret = 0;
	for (i = 0; !ret && i < pages; i++)
		ret = remap_pfn_range(vma, vma->vm_start + i * SZ_64K,
				      PHYS_PFN(cpumap_table->pages[i]->physical_address),
				      SZ_64K, vma->vm_page_prot);
	mutex_unlock(&cpumap_lock);
	return ret;
}

/*
 * Unpins the range. After the callback there is nothing to unpin, and the driver may have given the
 * table's address to another pin.
 */
static int cpumap_release(struct inode *inode, struct file *file)
{
	struct nvidia_p2p_page_table *table;

	mutex_lock(&cpumap_lock);
	table = cpumap_table;
	cpumap_table = NULL;
	mutex_unlock(&cpumap_lock);
	if (table)
		nvidia_p2p_put_pages(0, 0, cpumap_addr, table);
	return 0;
}

static const struct file_operations cpumap_fops = {
	.owner = THIS_MODULE,
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
