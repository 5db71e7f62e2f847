// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A scatterlist that is made in one pass: how many entries it will have is not
 * known before the last one. It is a chain of arrays, as sg_alloc_table() makes
 * them, that begins small. When it is complete its entries are mapped for a device,
 * one by one: the list is all that need be kept of that.
 */
#include <linux/dma-mapping.h>
#include <linux/kernel.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "shim.h"
#ifdef NVPM_KUNIT
#include <kunit/static_stub.h>
#include "kunit/helpers.h"
#else
#define KUNIT_STATIC_STUB_REDIRECT(...) do {} while (0)
#endif

/* The first array of a list that is not to have one entry alone. Later ones double. */
#define NVPM_SG_FEW 16

/* Entries that are mapped before others get a turn: as many as an array has. */
#define NVPM_SG_TURN 128

/* Entries of the array that comes after one of @before. */
static u32 nvpm_sg_next_size(u32 before)
{
	return clamp_t(u32, 2 * before, 2 * NVPM_SG_FEW, SG_MAX_SINGLE_ALLOC);
}

int nvpm_sg_grow(struct nvpm_sg_list *list, bool more)
{
	struct scatterlist *array, *last = list->next - 1;
	bool first = !list->table.sgl;
	u32 size;

	/* A registration may have a million pieces. */
	cond_resched();
	if (first)
		size = more ? NVPM_SG_FEW : 1;
	else
		size = nvpm_sg_next_size(list->size);
	array = kmalloc_array(size, sizeof(*array), GFP_KERNEL);
	if (!array)
		return -ENOMEM;
	/* No link, for those who look for one there. */
	array[size - 1].page_link = 0;
	list->next = array;
	list->room = size;
	list->size = size;
	if (first) {
		list->table.sgl = array;
		list->first = size;
		return 0;
	}
	/* What was the last entry makes room for the link. */
	*list->next++ = *last;
	list->room--;
	sg_chain(last, 1, array);
	return 0;
}

void nvpm_sg_finish(struct nvpm_sg_list *list)
{
	sg_mark_end(list->next - 1);
}

/* A registration may have a million entries: the kernel's other threads want a turn. */
static void nvpm_sg_give_way(u32 entry)
{
	if (entry % NVPM_SG_TURN == 0)
		cond_resched();
}

int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr)
{
	dma_addr_t dma;

	KUNIT_STATIC_STUB_REDIRECT(nvpm_dma_map, dev, phys, len, addr);
	dma = dma_map_resource(dev, phys, len, DMA_BIDIRECTIONAL, 0);
	if (dma_mapping_error(dev, dma))
		return -EIO;
	*addr = dma;
	return 0;
}

void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len)
{
	KUNIT_STATIC_STUB_REDIRECT(nvpm_dma_unmap, dev, addr, len);
	dma_unmap_resource(dev, addr, len, DMA_BIDIRECTIONAL, 0);
}

/* The entry behind one that is not the last. sg_next() would be a call for each. */
static struct scatterlist *nvpm_sg_behind(struct scatterlist *entry)
{
	entry++;
	return sg_is_chain(entry) ? sg_chain_ptr(entry) : entry;
}

int nvpm_sg_map(struct device *dev, struct scatterlist *sgl, u32 entries)
{
	struct scatterlist *entry = sgl;
	u64 addr;
	u32 i;
	int ret;

	for (i = 0; i < entries; i++) {
		if (i)
			entry = nvpm_sg_behind(entry);
		nvpm_sg_give_way(i);
		ret = nvpm_dma_map(dev, sg_dma_address(entry), sg_dma_len(entry), &addr);
		if (ret) {
			nvpm_sg_unmap(dev, sgl, i);
			return ret;
		}
		sg_dma_address(entry) = addr;
	}
	return 0;
}

void nvpm_sg_unmap(struct device *dev, struct scatterlist *sgl, u32 entries)
{
	struct scatterlist *entry = sgl;
	u32 i;

	for (i = 0; i < entries; i++) {
		if (i)
			entry = nvpm_sg_behind(entry);
		nvpm_sg_give_way(i);
		nvpm_dma_unmap(dev, sg_dma_address(entry), sg_dma_len(entry));
	}
}

void nvpm_sg_free(struct scatterlist *array, u32 size)
{
	struct scatterlist *next, *last;

	for (; array; array = next) {
		last = &array[size - 1];
		next = sg_is_chain(last) ? sg_chain_ptr(last) : NULL;
		kfree(array);
		size = nvpm_sg_next_size(size);
	}
}
