// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory behind a coherent link, as of GH200: RAM to the kernel, which the CPU
 * caches.
 *
 * While the knob "coherent" is 1, new allocations get their frames here instead of in
 * the BAR: in blocks of 2 MiB, taken when the knob is first set. Nothing of it is
 * charged to BAR1, and topology has no say. The driver maps it as what it is, with
 * dma_map_page(); a client that takes it for memory of a device, and maps it by itself
 * with dma_map_resource(), is in violation (owndma.c). From 580 on page tables say
 * CPU_CACHEABLE; before, nothing tells.
 *
 * 2 is such memory before it is online, or that is not to be: its pages are Reserved.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "sim.h"

#define SIM_BLOCK_FRAMES (SZ_2M >> SIM_PAGE_SHIFT)

static u32 sim_blocks(const struct sim_gpu *gpu)
{
	return DIV_ROUND_UP(gpu->nframes, SIM_BLOCK_FRAMES);
}

static void sim_coherent_reserve(const struct sim_gpu *gpu, bool reserved)
{
	struct page *page;
	u32 i, frame;

	for (i = 0; i < sim_blocks(gpu); i++)
		for (frame = 0; frame < SZ_2M >> PAGE_SHIFT && gpu->ram[i]; frame++) {
			page = gpu->ram[i] + frame;
			if (reserved)
				SetPageReserved(page);
			else
				ClearPageReserved(page);
		}
}

/* Nobody has an allocation any more. */
void sim_coherent_drop(struct sim_gpu *gpu)
{
	u32 i;

	if (!gpu->ram)
		return;
	sim_coherent_reserve(gpu, false);
	for (i = 0; i < sim_blocks(gpu); i++)
		if (gpu->ram[i])
			__free_pages(gpu->ram[i], get_order(SZ_2M));
	kvfree(gpu->ram);
	gpu->ram = NULL;
}

static int sim_coherent_take(struct sim_gpu *gpu)
{
	u32 i;

	gpu->ram = kvcalloc(sim_blocks(gpu), sizeof(*gpu->ram), GFP_KERNEL);
	if (!gpu->ram)
		return -ENOMEM;
	for (i = 0; i < sim_blocks(gpu); i++) {
		gpu->ram[i] = alloc_pages(GFP_KERNEL, get_order(SZ_2M));
		if (!gpu->ram[i]) {
			sim_coherent_drop(gpu);
			return -ENOMEM;
		}
	}
	return 0;
}

/* What the knob does. */
int sim_coherent_set(struct sim_gpu *gpu, u8 coherent)
{
	int ret = 0;

	mutex_lock(&gpu->lock);
	if (!gpu->present)
		ret = -ENODEV;
	else if (coherent && !gpu->ram)
		ret = sim_coherent_take(gpu);
	if (!ret)
		gpu->coherent = coherent;
	if (!ret && gpu->ram)
		sim_coherent_reserve(gpu, coherent == 2);
	mutex_unlock(&gpu->lock);
	return ret;
}

static struct page *sim_coherent_page(const struct sim_gpu *gpu, u32 frame)
{
	u32 within = frame % SIM_BLOCK_FRAMES;

	return gpu->ram[frame / SIM_BLOCK_FRAMES] + within * (SIM_PAGE_SIZE >> PAGE_SHIFT);
}

phys_addr_t sim_coherent_phys(const struct sim_gpu *gpu, u32 frame)
{
	return page_to_phys(sim_coherent_page(gpu, frame));
}

void *sim_coherent_kva(const struct sim_gpu *gpu, u32 frame)
{
	return page_address(sim_coherent_page(gpu, frame));
}

/* Whose memory is there, or NULL. gpu->lock is held. */
struct sim_alloc *sim_coherent_at(const struct sim_gpu *gpu, phys_addr_t phys)
{
	phys_addr_t start;
	u32 i, frame;

	for (i = 0; gpu->ram && i < sim_blocks(gpu); i++) {
		start = page_to_phys(gpu->ram[i]);
		if (phys < start || phys - start >= SZ_2M)
			continue;
		frame = i * SIM_BLOCK_FRAMES + ((phys - start) >> SIM_PAGE_SHIFT);
		return frame < gpu->nframes && gpu->owner[frame] &&
		       gpu->owner[frame]->coherent ? gpu->owner[frame] : NULL;
	}
	return NULL;
}

/* One frame, where @dev reaches it. */
dma_addr_t sim_coherent_map(struct device *dev, const struct sim_alloc *alloc, u32 page)
{
	return dma_map_page(dev, sim_coherent_page(alloc->gpu, alloc->frame[page]), 0,
			    SIM_PAGE_SIZE, DMA_BIDIRECTIONAL);
}

void sim_coherent_unmap(struct device *dev, dma_addr_t addr)
{
	dma_unmap_page(dev, addr, SIM_PAGE_SIZE, DMA_BIDIRECTIONAL);
}
