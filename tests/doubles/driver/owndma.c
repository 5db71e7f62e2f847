// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Observes mappings of GPU memory that a client makes for a device without the driver.
 *
 * A client that must not rely on the page table, because the callback may come, copies the
 * addresses and maps them with the kernel's dma_map_resource(), or as pieces of one range with
 * dma_iova_link(). The driver does not notice these calls. So that a test can nevertheless free
 * memory in the middle of a mapping, ftrace redirects the kernel's functions that begin and end
 * such mappings to this file, as live patches do. This file counts mappings of GPU memory. It
 * injects frees before it calls the real function, at the points in_, and after that call, at the
 * points after_.
 *
 * A mapping for a device that uses physical addresses is not counted, because a client need not
 * undo such a mapping.
 */
#include <linux/module.h>
#include <linux/spinlock.h>

#include "sim.h"

static bool own_dma = true;
module_param(own_dma, bool, 0444);
MODULE_PARM_DESC(own_dma, "see GPU memory that clients map by themselves; 0 for measurements");

struct sim_own {
	struct list_head node;
	struct device *dev;
	dma_addr_t addr;
	struct sim_alloc *alloc;
};

static LIST_HEAD(sim_owns);
static DEFINE_SPINLOCK(sim_owns_lock);

/*
 * Begins a mapping. Returns a reference to the allocation, or NULL if the memory is not the GPU's.
 */
static struct sim_alloc *sim_own_begins(phys_addr_t phys)
{
	struct sim_alloc *alloc = sim_alloc_at(phys);

	if (alloc && alloc->coherent)
		sim_violation("own_coherent",
			      "memory behind a coherent link, at %pa, mapped by a client as that of a device",
			      &phys);
	if (alloc)
		sim_inject(SIM_in_dma_map, alloc);
	return alloc;
}

/*
 * Counts a mapping that has begun, unless the kernel has @failed, or the mapping is not to be
 * @counted.
 */
static void sim_own_begun(struct device *dev, dma_addr_t addr, struct sim_alloc *alloc,
			  bool failed, bool counted)
{
	struct sim_own *own;

	if (!alloc)
		return;
	if (!failed && counted) {
		own = kzalloc_obj(*own, GFP_KERNEL | __GFP_NOFAIL);
		own->dev = dev;
		own->addr = addr;
		own->alloc = alloc;
		sim_alloc_get(alloc);
		spin_lock_irq(&sim_owns_lock);
		list_add(&own->node, &sim_owns);
		spin_unlock_irq(&sim_owns_lock);
		sim_add(SIM_live_own_mappings, 1);
	}
	if (!failed)
		sim_inject(SIM_after_dma_map, alloc);
	sim_alloc_put(alloc);
}

/*
 * Returns the mapping of GPU memory that is ending. Returns NULL if there is none, because other
 * modules end mappings of other memory.
 */
static struct sim_own *sim_own_ends(struct device *dev, dma_addr_t addr)
{
	struct sim_own *own, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&sim_owns_lock, flags);
	list_for_each_entry(own, &sim_owns, node) {
		if (own->dev == dev && own->addr == addr) {
			list_del(&own->node);
			found = own;
			break;
		}
	}
	spin_unlock_irqrestore(&sim_owns_lock, flags);
	if (found)
		sim_inject(SIM_in_dma_unmap, found->alloc);
	return found;
}

static void sim_own_ended(struct sim_own *own)
{
	if (!own)
		return;
	sim_add(SIM_live_own_mappings, -1);
	sim_inject(SIM_after_dma_unmap, own->alloc);
	sim_alloc_put(own->alloc);
	kfree(own);
}

/*
 * These functions call the kernel's functions. Without the barriers, the compiler could end such a
 * function by a jump to the kernel's function. The kernel's function would then return to our
 * caller, and sim_divert() would think that our caller has called the kernel's function.
 */
static dma_addr_t sim_dma_map_resource(struct device *dev, phys_addr_t phys,
				       size_t size, enum dma_data_direction dir,
				       unsigned long attrs)
{
	struct sim_alloc *alloc = sim_own_begins(phys);
	dma_addr_t addr = dma_map_resource(dev, phys, size, dir, attrs);

	barrier();
	sim_own_begun(dev, addr, alloc, alloc && dma_mapping_error(dev, addr),
		      !lab_dma_direct(dev));
	return addr;
}

static void sim_dma_unmap_resource(struct device *dev, dma_addr_t addr,
				   size_t size, enum dma_data_direction dir,
				   unsigned long attrs)
{
	struct sim_own *own = sim_own_ends(dev, addr);

	dma_unmap_resource(dev, addr, size, dir, attrs);
	barrier();
	sim_own_ended(own);
}

#ifdef LAB_DMA_RANGES
static bool sim_iova_try_alloc(struct device *dev, struct dma_iova_state *state,
			       phys_addr_t phys, size_t size)
{
	struct sim_alloc *alloc = sim_own_begins(phys);
	bool taken = dma_iova_try_alloc(dev, state, phys, size);

	barrier();
	sim_own_begun(dev, state->addr, alloc, !taken, true);
	return taken;
}

static void sim_iova_destroy(struct device *dev, struct dma_iova_state *state,
			     size_t mapped, enum dma_data_direction dir,
			     unsigned long attrs)
{
	struct sim_own *own = sim_own_ends(dev, state->addr);

	dma_iova_destroy(dev, state, mapped, dir, attrs);
	barrier();
	sim_own_ended(own);
}
#endif

/* Leads all calls of the kernel's functions here, except those of this file. */
static void notrace sim_divert(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
	if (!within_module(parent_ip, THIS_MODULE))
		ftrace_regs_set_instruction_pointer(fregs,
						    (unsigned long)ops->private);
}

#define SIM_DIVERSION(function, to) {					\
	.from = (function),						\
	.ops.func = sim_divert,						\
	.ops.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_RECURSION |	\
		     LAB_SAVES_REGS,					\
	.ops.private = (to),						\
}

static struct sim_diversion {
	void *from;
	struct ftrace_ops ops;
} sim_diversions[] = {
	SIM_DIVERSION(dma_map_resource, sim_dma_map_resource),
	SIM_DIVERSION(dma_unmap_resource, sim_dma_unmap_resource),
#ifdef LAB_DMA_RANGES
	SIM_DIVERSION(dma_iova_try_alloc, sim_iova_try_alloc),
	SIM_DIVERSION(dma_iova_destroy, sim_iova_destroy),
#endif
};

static size_t sim_diverted;

int sim_own_dma_init(void)
{
	struct ftrace_ops *ops;
	int ret = 0;

	while (own_dma && !ret && sim_diverted < ARRAY_SIZE(sim_diversions)) {
		ops = &sim_diversions[sim_diverted].ops;
		ret = ftrace_set_filter_ip(ops, (unsigned long)sim_diversions[sim_diverted].from,
					   0, 0);
		if (!ret)
			ret = register_ftrace_function(ops);
		if (ret)
			ftrace_free_filter(ops);
		else
			sim_diverted++;
	}
	if (ret)
		sim_own_dma_exit();
	return ret;
}

/* Ends the redirection. No module that maps GPU memory is loaded, so no thread is in this file. */
void sim_own_dma_exit(void)
{
	while (sim_diverted) {
		sim_diverted--;
		unregister_ftrace_function(&sim_diversions[sim_diverted].ops);
		ftrace_free_filter(&sim_diversions[sim_diverted].ops);
	}
}
