// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory behind a coherent link, like that of a GH200. The kernel uses such memory as RAM, and
 * the CPU caches it.
 *
 * While the knob "coherent" is 1, new allocations get frames of RAM instead of frames of the BAR.
 * The first such allocation takes all frames of RAM. They occupy no room in BAR1, and the topology
 * does not matter. The driver maps them as RAM, with dma_map_page(). It is a violation if a client
 * maps them as device memory, with dma_map_resource() (owndma.c). Page tables of 580 and later have
 * the flag CPU_CACHEABLE for such memory. Older page tables do not distinguish it.
 *
 * If the knob is 2, the kernel has not onlined this memory (yet): its pages are Reserved.
 */
#include <linux/gfp.h>

#include "sim.h"

#define SIM_FRAME_PAGES		(SIM_PAGE_SIZE >> PAGE_SHIFT)

static bool ram_reserved;

static void sim_coherent_reserve(bool reserved)
{
	u32 i;

	if (ram_reserved == reserved)
		return;
	for (i = 0; i < sim_gpu.nframes * SIM_FRAME_PAGES; i++) {
		struct page *page = sim_gpu.ram[i / SIM_FRAME_PAGES] + i % SIM_FRAME_PAGES;

		if (reserved)
			SetPageReserved(page);
		else
			ClearPageReserved(page);
	}
	ram_reserved = reserved;
}

/* Gives the RAM back after the last allocation has ended. */
void sim_coherent_drop(void)
{
	u32 f;

	if (!sim_gpu.ram)
		return;
	sim_coherent_reserve(false);
	for (f = 0; f < sim_gpu.nframes && sim_gpu.ram[f]; f++)
		__free_pages(sim_gpu.ram[f], get_order(SIM_PAGE_SIZE));
	kvfree(sim_gpu.ram);
	sim_gpu.ram = NULL;
}

/* Allocates RAM for the GPU's frames. gpu.lock is held. */
int sim_coherent_take(bool reserved)
{
	u32 f;

	if (!sim_gpu.ram) {
		sim_gpu.ram = kvcalloc(sim_gpu.nframes, sizeof(*sim_gpu.ram), GFP_KERNEL);
		for (f = 0; sim_gpu.ram && f < sim_gpu.nframes; f++) {
			sim_gpu.ram[f] = alloc_pages(GFP_KERNEL, get_order(SIM_PAGE_SIZE));
			if (!sim_gpu.ram[f])
				sim_coherent_drop();
		}
	}
	if (!sim_gpu.ram)
		return -ENOMEM;
	sim_coherent_reserve(reserved);
	return 0;
}

/* Returns the number of the frame at this address, or the number of all frames. */
u32 sim_coherent_frame(phys_addr_t phys)
{
	u32 f;

	for (f = 0; READ_ONCE(sim_gpu.ram) && f < sim_gpu.nframes; f++)
		if (phys - page_to_phys(sim_gpu.ram[f]) < SIM_PAGE_SIZE)
			return f;
	return sim_gpu.nframes;
}
