// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory behind a coherent link, as of GH200: RAM to the kernel, which the CPU
 * caches.
 *
 * While the knob "coherent" is 1, new allocations get their frames here instead of in
 * the BAR: all frames are taken at the first such allocation. They are not charged to
 * BAR1, and topology has no influence. The driver maps them as RAM, with dma_map_page();
 * a client that maps them as device memory, with dma_map_resource(), is in violation
 * (owndma.c). From 580 on, page tables say CPU_CACHEABLE; older ones do not tell.
 *
 * With the value 2, this memory is not online (yet): its pages are Reserved.
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
