// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exports memory as a dma-buf, as the driver's nv-dmabuf.c does.
 *
 * The dma-buf has bus addresses and no pages, so only devices that accept this can attach. The
 * memory exists until the last reference to the dma-buf is dropped. If the owner frees the memory
 * before that, the owner loses its address, but the memory stays. Importers do not learn of the
 * free, and are never asked to move.
 */
#include <linux/dma-buf.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "sim.h"

LAB_IMPORT_DMA_BUF;

struct sim_dma_buf {
	struct sim_alloc *alloc;	/* with a reference, counted in npersistent */
	u64 offset;			/* in the allocation */
	u64 size;
};

/*
 * Stores the physical address of the byte at an offset. Returns the number of bytes that follow
 * without a gap.
 */
static u64 sim_dma_buf_run(const struct sim_dma_buf *buf, u64 at, phys_addr_t *phys)
{
	u64 from = buf->offset + at, left = buf->size - at;
	u32 page = from >> SIM_PAGE_SHIFT;
	u64 run = SIM_PAGE_SIZE - from % SIM_PAGE_SIZE;

	*phys = sim_alloc_phys(buf->alloc, page) + from % SIM_PAGE_SIZE;
	while (run < left && sim_alloc_phys(buf->alloc, ++page) == *phys + run)
		run += SIM_PAGE_SIZE;
	return min(run, left);
}

/* Tells the network cards that a device may use the memory, or no longer. */
static void sim_dma_buf_watch(const struct sim_dma_buf *buf, bool pinned)
{
	u32 first = buf->offset >> SIM_PAGE_SHIFT;
	u32 last = (buf->offset + buf->size - 1) >> SIM_PAGE_SHIFT;

	sim_watch(buf->alloc, first, last + 1 - first, pinned);
}

static u32 sim_dma_buf_runs(const struct sim_dma_buf *buf)
{
	phys_addr_t phys;
	u32 runs = 0;
	u64 at = 0;

	while (at < buf->size) {
		at += sim_dma_buf_run(buf, at, &phys);
		runs++;
	}
	return runs;
}

static void sim_dma_buf_unmap(struct dma_buf_attachment *attachment, struct sg_table *table,
			      enum dma_data_direction direction)
{
	struct scatterlist *sg;
	u32 i;

	for_each_sgtable_dma_sg(table, sg, i)
		if (sg_dma_len(sg))
			dma_unmap_resource(attachment->dev, sg_dma_address(sg), sg_dma_len(sg),
					   direction, 0);
	sim_dma_buf_watch(attachment->dmabuf->priv, false);
	sg_free_table(table);
	kfree(table);
}

/* Maps all entries. Stops at the first failure. The length of entries that are not mapped is 0. */
static int sim_dma_buf_fill(const struct sim_dma_buf *buf, struct device *dev,
			    struct sg_table *table, enum dma_data_direction direction)
{
	struct scatterlist *sg;
	phys_addr_t phys;
	dma_addr_t dma;
	u64 run, at = 0;
	u32 i;

	for_each_sgtable_dma_sg(table, sg, i) {
		run = sim_dma_buf_run(buf, at, &phys);
		dma = dma_map_resource(dev, phys, run, direction, 0);
		if (dma_mapping_error(dev, dma))
			return -EIO;
		sg_set_page(sg, NULL, run, 0);
		sg_dma_address(sg) = dma;
		sg_dma_len(sg) = run;
		at += run;
	}
	return 0;
}

static struct sg_table *sim_dma_buf_map(struct dma_buf_attachment *attachment,
					enum dma_data_direction direction)
{
	const struct sim_dma_buf *buf = attachment->dmabuf->priv;
	struct sg_table *table = kzalloc_obj(*table);
	int err;

	if (!table)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(table, sim_dma_buf_runs(buf), GFP_KERNEL);
	if (err) {
		kfree(table);
		return ERR_PTR(err);
	}
	sim_dma_buf_watch(buf, true);
	err = sim_dma_buf_fill(buf, attachment->dev, table, direction);
	if (err) {
		sim_dma_buf_unmap(attachment, table, direction);
		return ERR_PTR(err);
	}
	return table;
}

/* Attaches a device, if it can use bus addresses without pages. */
static int sim_dma_buf_attach(struct dma_buf *dma_buf, struct dma_buf_attachment *attachment)
{
	return attachment->peer2peer ? 0 : -EOPNOTSUPP;
}

static void sim_dma_buf_free(struct sim_dma_buf *buf)
{
	struct sim_alloc *alloc = buf->alloc;

	sim_api_lock_always("the end of a dma-buf", true);
	mutex_lock(&sim_gpu.lock);
	alloc->npersistent--;
	mutex_unlock(&sim_gpu.lock);
	sim_alloc_settle(alloc);
	sim_api_unlock();
	sim_add(SIM_live_dma_bufs, -1);
	sim_alloc_put(alloc);
	kfree(buf);
}

static void sim_dma_buf_release(struct dma_buf *dma_buf)
{
	sim_dma_buf_free(dma_buf->priv);
}

static const struct dma_buf_ops sim_dma_buf_ops = {
	.attach = sim_dma_buf_attach,
	.map_dma_buf = sim_dma_buf_map,
	.unmap_dma_buf = sim_dma_buf_unmap,
	.release = sim_dma_buf_release,
};

/* Makes the private data of a dma-buf. From now on, the data keep the memory of the range. */
static struct sim_dma_buf *sim_dma_buf_new(u64 addr, u64 size)
{
	struct sim_dma_buf *buf;
	struct sim_alloc *alloc;

	if (!size || !PAGE_ALIGNED(addr | size))
		return ERR_PTR(-EINVAL);
	buf = kzalloc_obj(*buf);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&sim_gpu.lock);
	alloc = sim_alloc_find(addr);
	if (!alloc || size > alloc->size - (addr - alloc->va) || alloc->unbacked || alloc->coherent) {
		mutex_unlock(&sim_gpu.lock);
		kfree(buf);
		return ERR_PTR(-EINVAL);
	}
	sim_alloc_get(alloc);
	alloc->npersistent++;
	mutex_unlock(&sim_gpu.lock);
	sim_add(SIM_live_dma_bufs, 1);
	buf->alloc = alloc;
	buf->offset = addr - alloc->va;
	buf->size = size;
	return buf;
}

/* Returns a descriptor of a new dma-buf, or an error. */
long sim_export(u64 addr, u64 size)
{
	struct sim_dma_buf *buf = sim_dma_buf_new(addr, size);
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dma_buf;
	int fd;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	info.ops = &sim_dma_buf_ops;
	info.size = size;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = buf;
	dma_buf = dma_buf_export(&info);
	if (IS_ERR(dma_buf)) {
		sim_dma_buf_free(buf);
		return PTR_ERR(dma_buf);
	}
	fd = dma_buf_fd(dma_buf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dma_buf);
	return fd;
}
