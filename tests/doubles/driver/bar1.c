// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Room in BAR1.
 *
 * As in the real driver, pinned memory occupies BAR1 in extents. A pin makes extents for pages that
 * have none, and is counted in existing extents. An extent is freed with the last pin that is
 * counted in it. Persistent pins have separate extents, because the real driver keeps these pins in
 * a separate object. RAM occupies no room in BAR1.
 */
#include <linux/slab.h>

#include "sim.h"

struct sim_extent {
	struct list_head node;	/* in the order of their pages */
	u32 first;		/* page within the allocation */
	u32 end;
	u32 npins;
};

static u64 sim_extent_bytes(const struct sim_extent *extent)
{
	return (u64)(extent->end - extent->first) << SIM_PAGE_SHIFT;
}

/* Returns the first extent that ends after a page, or NULL. */
static struct sim_extent *sim_extent_from(struct list_head *extents, u32 page)
{
	struct sim_extent *extent;

	list_for_each_entry(extent, extents, node)
		if (extent->end > page)
			return extent;
	return NULL;
}

/* Makes an extent that begins at a page and ends at the next extent, or at @end. */
static struct sim_extent *sim_extent_new(struct list_head *extents, u32 page, u32 end,
					 struct sim_extent *next)
{
	struct sim_extent *extent = kzalloc_obj(*extent);

	if (!extent)
		return NULL;
	extent->first = page;
	extent->end = next ? min(end, next->first) : end;
	if (SIM_BAR1_RESERVE + sim_gpu.bar1_used + sim_extent_bytes(extent) >
	    sim_knob(bar1_bytes)) {
		kfree(extent);
		return NULL;
	}
	sim_gpu.bar1_used += sim_extent_bytes(extent);
	list_add_tail(&extent->node, next ? &next->node : extents);
	return extent;
}

/* Stops counting a pin in the extents of its pages before @end. */
static void sim_bar1_leave(struct sim_alloc *alloc, struct sim_pin *pin, u32 end)
{
	struct sim_extent *extent, *next;

	lockdep_assert_held(&sim_gpu.lock);
	pin->remapped = false;
	list_for_each_entry_safe(extent, next, &alloc->extents[pin->persistent], node) {
		if (extent->end <= pin->first || extent->first >= end || --extent->npins)
			continue;
		sim_gpu.bar1_used -= sim_extent_bytes(extent);
		list_del(&extent->node);
		kfree(extent);
		pin->remapped = true;
	}
}

int sim_bar1_map(struct sim_alloc *alloc, struct sim_pin *pin)
{
	struct list_head *extents = &alloc->extents[pin->persistent];
	u32 page = pin->first, end = page + pin->entries;
	struct sim_extent *extent;

	lockdep_assert_held(&sim_gpu.lock);
	while (page < end && !alloc->coherent) {
		extent = sim_extent_from(extents, page);
		if (!extent || extent->first > page) {
			extent = sim_extent_new(extents, page, end, extent);
			if (!extent) {
				sim_bar1_leave(alloc, pin, page);
				return -ENOMEM;
			}
			pin->remapped = true;
		}
		extent->npins++;
		page = extent->end;
	}
	return 0;
}

void sim_bar1_unmap(struct sim_alloc *alloc, struct sim_pin *pin)
{
	sim_bar1_leave(alloc, pin, pin->first + pin->entries);
}
