// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A peer-memory client that does only what no client can leave out: it pins the memory once, maps
 * each contiguous extent once, gives the scatterlist to the core, unmaps, and unpins. No client can
 * cost less, so the benchmark compares nv_peer_mem with this client.
 *
 * The client is safe only in the benchmark, because it keeps no record, checks nothing that the
 * driver reports, counts nothing, and ignores that memory is freed.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <nv-p2p.h>
#include <rdma/peer_mem.h>

static bool persistent_api_support = true;
module_param(persistent_api_support, bool, 0444);
MODULE_PARM_DESC(persistent_api_support, "Whether pins outlive the memory, as for nv_peer_mem");

/* What undoing a pin needs. The core keeps a pointer to this structure. */
struct ideal_pin {
	struct nvidia_p2p_page_table *pages;
	u64 address;
};

static void ideal_freed(void *data)
{
}

static int ideal_acquire(unsigned long address, size_t size, void *private_data,
			 char *private_name, void **context)
{
	struct ideal_pin *pin = kmalloc(sizeof(*pin), GFP_KERNEL);
	int ret = -ENOMEM;

	if (pin && persistent_api_support)
		ret = nvidia_p2p_get_pages_persistent(address, size, &pin->pages, 0);
	else if (pin)
		ret = nvidia_p2p_get_pages(0, 0, address, size, &pin->pages, ideal_freed, pin);
	if (ret) {
		kfree(pin);
		return 0;
	}
	pin->address = address;
	*context = pin;
	return 1;
}

static int ideal_get_pages(unsigned long address, size_t size, int write, int force,
			   struct sg_table *table, void *context, u64 core_context)
{
	return 0;
}

/* Returns the number of pages from page @first on that follow each other on the bus. */
static u32 ideal_extent(const struct nvidia_p2p_page_table *pages, u32 first)
{
	struct nvidia_p2p_page **page = pages->pages + first;
	struct nvidia_p2p_page **end = pages->pages + pages->entries;
	u64 next = (*page)->physical_address;

	do
		next += SZ_64K;
	while (++page < end && (*page)->physical_address == next);
	return page - pages->pages - first;
}

static int ideal_dma_map(struct sg_table *table, void *context, struct device *device,
			 int dmasync, int *mapped)
{
	const struct nvidia_p2p_page_table *pages = ((struct ideal_pin *)context)->pages;
	u32 at, extents = 0;
	struct scatterlist *entry;
	int ret;

	for (at = 0; at < pages->entries; at += ideal_extent(pages, at))
		extents++;
	ret = sg_alloc_table(table, extents, GFP_KERNEL);
	if (ret)
		return ret;
	for (at = 0, entry = table->sgl; entry; entry = sg_next(entry)) {
		u32 length = extents == 1 ? pages->entries : ideal_extent(pages, at);

		entry->length = length * SZ_64K;
		sg_dma_len(entry) = entry->length;
		sg_dma_address(entry) = dma_map_resource(device, pages->pages[at]->physical_address,
							 entry->length, DMA_BIDIRECTIONAL, 0);
		at += length;
	}
	*mapped = extents;
	return 0;
}

static int ideal_dma_unmap(struct sg_table *table, void *context, struct device *device)
{
	struct scatterlist *entry;

	for (entry = table->sgl; entry; entry = sg_next(entry))
		dma_unmap_resource(device, sg_dma_address(entry), sg_dma_len(entry),
				   DMA_BIDIRECTIONAL, 0);
	return 0;
}

static void ideal_put_pages(struct sg_table *table, void *context)
{
	sg_free_table(table);
}

static unsigned long ideal_get_page_size(void *context)
{
	return PAGE_SIZE;
}

/* Unpins here and not in put_pages, because put_pages may run under a lock of the core. */
static void ideal_release(void *context)
{
	struct ideal_pin *pin = context;

	if (persistent_api_support)
		nvidia_p2p_put_pages_persistent(pin->address, pin->pages, 0);
	else
		nvidia_p2p_put_pages(0, 0, pin->address, pin->pages);
	kfree(pin);
}

static const struct peer_memory_client ideal_client = {
	.name = "ideal",
	.version = "1",
	.acquire = ideal_acquire,
	.get_pages = ideal_get_pages,
	.dma_map = ideal_dma_map,
	.dma_unmap = ideal_dma_unmap,
	.put_pages = ideal_put_pages,
	.get_page_size = ideal_get_page_size,
	.release = ideal_release,
};

static void *ideal_handle;
static invalidate_peer_memory ideal_invalidate;

static int __init ideal_init(void)
{
	ideal_handle = ib_register_peer_memory_client(&ideal_client, persistent_api_support ?
						      NULL : &ideal_invalidate);
	return ideal_handle ? 0 : -EINVAL;
}

static void __exit ideal_exit(void)
{
	ib_unregister_peer_memory_client(ideal_handle);
}

module_init(ideal_init);
module_exit(ideal_exit);

MODULE_DESCRIPTION("The least that a peer-memory client can do, for comparison");
MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_LICENSE("Dual BSD/GPL");
