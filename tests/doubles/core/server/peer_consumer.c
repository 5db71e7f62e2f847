// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers peer memory as the driver of a device does, but for no real use: nothing is
 * transferred.
 *
 * Each open file "umem" in debugfs has at most one registration. Only one thread may use an open
 * file. A write is one command:
 *
 *   register ADDRESS LENGTH WAY    memory of this process. WAY is revocable, as mlx5
 *                                  registers memory regions, or fixed, as mlx5
 *                                  registers objects of its hardware: queues,
 *                                  doorbells, DevX.
 *   deregister
 *   repeat ADDRESS LENGTH WAY N    registers and deregisters, N times
 *   device N                       takes the Nth RDMA device, instead of the first
 *
 * A read returns the outcome, "name number" on each line: ticks of get_cycles() for both
 * commands, entries of the scatterlist, and the page size that a device would use. A region
 * that was revoked must still be deregistered.
 */
#include <net/net_namespace.h>

#include "core_priv.h"
#include "peer_server.h"

/* The page sizes of mlx5: 4 KiB to 2 GiB. */
#define PEER_PAGE_SIZES GENMASK(31, 12)

/* The largest number of devices among which the command "device" searches. */
#define PEER_DEVICES 16

struct peer_consumer {
	struct ib_device *device;
	struct ib_umem *umem;
	bool revoked;
	u64 register_ticks;
	u64 deregister_ticks;
	unsigned int entries;
	unsigned long page_size;
};

static void peer_consumer_invalidate(struct ib_umem *umem, void *priv)
{
	struct peer_consumer *c = priv;

	WRITE_ONCE(c->revoked, true);
}

static int peer_consumer_begin(struct peer_consumer *c, unsigned long address,
			       size_t length, unsigned long flags)
{
	u64 began = get_cycles();
	struct ib_umem *umem;
	int err;

	umem = ib_umem_get_peer(c->device, address, length, IB_ACCESS_LOCAL_WRITE, flags);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	c->page_size = ib_umem_find_best_pgsz(umem, PEER_PAGE_SIZES, address);
	c->entries = lab_umem_table(umem)->nents;
	c->revoked = false;
	err = ib_umem_activate_invalidation_notifier(umem, peer_consumer_invalidate, c);
	if (err) {
		ib_umem_stop_invalidation_notifier(umem);
		ib_umem_release(umem);
		return err;
	}
	c->umem = umem;
	c->register_ticks += get_cycles() - began;
	return 0;
}

static void peer_consumer_end(struct peer_consumer *c)
{
	u64 began = get_cycles();

	ib_umem_stop_invalidation_notifier(c->umem);
	ib_umem_release(c->umem);
	c->umem = NULL;
	c->deregister_ticks += get_cycles() - began;
}

static int peer_consumer_choose(struct peer_consumer *c, u32 index)
{
	struct ib_device *device = ib_device_get_by_index(&init_net, index);

	if (!device)
		return -ENODEV;
	ib_device_put(c->device);
	c->device = device;
	return 0;
}

static int peer_consumer_obey(struct peer_consumer *c, const char *text)
{
	unsigned int cycles, words;
	unsigned long address;
	char verb[16], way[16];
	size_t length;
	bool repeat;
	u32 index;
	int err;

	if (!c->umem && sscanf(text, "device %u", &index) == 1)
		return peer_consumer_choose(c, index);
	words = sscanf(text, "%15s %lu %zu %15s %u", verb, &address, &length, way, &cycles);
	if (words == 1 && c->umem && !strcmp(verb, "deregister")) {
		peer_consumer_end(c);
		return 0;
	}
	repeat = words == 5 && cycles && !strcmp(verb, "repeat");
	if ((!repeat && (words != 4 || strcmp(verb, "register"))) ||
	    (strcmp(way, "revocable") && strcmp(way, "fixed")))
		return -EINVAL;
	if (c->umem)
		return -EBUSY;
	c->register_ticks = 0;
	c->deregister_ticks = 0;
	do {
		err = peer_consumer_begin(c, address, length,
					  *way == 'r' ? IB_PEER_MEM_INVAL_SUPP : 0);
		if (repeat && !err)
			peer_consumer_end(c);
	} while (repeat && !err && --cycles);
	return err;
}

static int umem_show(struct seq_file *m, void *unused)
{
	struct peer_consumer *c = m->private;

	seq_printf(m, "register_ticks %llu\n", c->register_ticks);
	seq_printf(m, "deregister_ticks %llu\n", c->deregister_ticks);
	seq_printf(m, "entries %u\n", c->entries);
	seq_printf(m, "page_size %lu\n", c->page_size);
	seq_printf(m, "revoked %d\n", READ_ONCE(c->revoked));
	return 0;
}

static ssize_t umem_write(struct file *file, const char __user *buf, size_t count,
			  loff_t *pos)
{
	char *text __free(kfree) = memdup_user_nul(buf, count);
	struct peer_consumer *c = ((struct seq_file *)file->private_data)->private;

	if (IS_ERR(text))
		return PTR_ERR(text);
	return peer_consumer_obey(c, text) ?: count;
}

static void peer_consumer_free(struct peer_consumer *c)
{
	if (c->umem)
		peer_consumer_end(c);
	if (c->device)
		ib_device_put(c->device);
	kfree(c);
}

static int umem_open(struct inode *inode, struct file *file)
{
	struct peer_consumer *c = kzalloc_obj(*c);
	int err;
	u32 i;

	if (!c)
		return -ENOMEM;
	for (i = 0; i < PEER_DEVICES && !c->device; i++)
		c->device = ib_device_get_by_index(&init_net, i);
	err = c->device ? single_open(file, umem_show, c) : -ENODEV;
	if (err)
		peer_consumer_free(c);
	return err;
}

static int umem_release(struct inode *inode, struct file *file)
{
	peer_consumer_free(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct file_operations umem_fops = {
	.owner = THIS_MODULE,
	.open = umem_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.write = umem_write,
	.release = umem_release,
};

void peer_consumer_create(struct dentry *dir)
{
	debugfs_create_file("umem", 0600, dir, NULL, &umem_fops);
}
