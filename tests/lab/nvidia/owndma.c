// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory that a client maps for its device by itself.
 *
 * A client that must not rely on the page table once the callback may come
 * copies the addresses and maps them with the kernel's dma_map_resource(), or as
 * pieces of one range with dma_iova_link(). The driver has no part in that; so that
 * memory can be freed in the middle of it all the same, the kernel's functions that
 * begin and end it are led through here with ftrace, as live patches are. Mappings of
 * GPU memory are counted, and frees can be injected at the points called in_, before
 * the real function, and after_, behind it.
 *
 * A device that uses physical addresses has nothing to undo: a client need not, and
 * it is not counted.
 *
 * A kernel without that part of ftrace does not get these points: the file
 * "own_dma" says whether it has.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "sim.h"

bool sim_own_dma = LAB_DIVERTS;
module_param_named(own_dma, sim_own_dma, bool, 0444);
MODULE_PARM_DESC(own_dma, "see GPU memory that clients map by themselves; 0 for measurements");

#if LAB_DIVERTS

struct sim_own {
	struct list_head node;
	struct device *dev;
	dma_addr_t addr;
	struct sim_alloc *alloc;
};

static LIST_HEAD(sim_owns);
static DEFINE_SPINLOCK(sim_owns_lock);

/*
 * The real functions. The barriers keep the compiler from jumping to them at the
 * end of a function: they would return to our caller, and be taken for his.
 */
static dma_addr_t sim_real_map(struct device *dev, phys_addr_t phys,
			       size_t size, enum dma_data_direction dir,
			       unsigned long attrs)
{
	dma_addr_t addr = dma_map_resource(dev, phys, size, dir, attrs);

	barrier();
	return addr;
}

static void sim_real_unmap(struct device *dev, dma_addr_t addr, size_t size,
			   enum dma_data_direction dir, unsigned long attrs)
{
	dma_unmap_resource(dev, addr, size, dir, attrs);
	barrier();
}

/* With a reference, if it is GPU memory. */
static struct sim_alloc *sim_own_alloc(phys_addr_t phys)
{
	struct sim_alloc *alloc = NULL;

	if ((phys >= sim_gpu.bar && phys - sim_gpu.bar < sim_gpu.size) ||
	    READ_ONCE(sim_gpu.ram))
		alloc = sim_alloc_at(&sim_gpu, phys);
	if (alloc && alloc->coherent)
		sim_violation(SIM_BAD_OWN_COHERENT,
			      "memory behind a coherent link, at %pa, mapped by a client as that of a device",
			      &phys);
	return alloc;
}

/* Mapped at @addr, from here on; takes the reference. */
static void sim_own_add(struct device *dev, dma_addr_t addr, struct sim_alloc *alloc)
{
	struct sim_own *own = kzalloc_obj(*own, GFP_KERNEL | __GFP_NOFAIL);

	own->dev = dev;
	own->addr = addr;
	own->alloc = alloc;
	spin_lock_irq(&sim_owns_lock);
	list_add(&own->node, &sim_owns);
	spin_unlock_irq(&sim_owns_lock);
	sim_add(SIM_LIVE_OWN_MAPPINGS, 1);
	sim_inject(SIM_INJECT_AFTER_DMA_MAP, alloc);
}

static dma_addr_t sim_dma_map_resource(struct device *dev, phys_addr_t phys,
				       size_t size, enum dma_data_direction dir,
				       unsigned long attrs)
{
	struct sim_alloc *alloc = sim_own_alloc(phys);
	dma_addr_t addr;

	if (!alloc)
		return sim_real_map(dev, phys, size, dir, attrs);

	sim_inject(SIM_INJECT_IN_DMA_MAP, alloc);
	addr = sim_real_map(dev, phys, size, dir, attrs);
	if (dma_mapping_error(dev, addr)) {
		sim_alloc_put(alloc);
	} else if (lab_dma_direct(dev)) {
		sim_inject(SIM_INJECT_AFTER_DMA_MAP, alloc);
		sim_alloc_put(alloc);
	} else {
		sim_own_add(dev, addr, alloc);
	}
	return addr;
}

static struct sim_own *sim_own_take(struct device *dev, dma_addr_t addr)
{
	struct sim_own *own;
	unsigned long flags;

	/* Others than GPU clients may call from anywhere. */
	spin_lock_irqsave(&sim_owns_lock, flags);
	list_for_each_entry(own, &sim_owns, node) {
		if (own->dev == dev && own->addr == addr) {
			list_del(&own->node);
			spin_unlock_irqrestore(&sim_owns_lock, flags);
			return own;
		}
	}
	spin_unlock_irqrestore(&sim_owns_lock, flags);
	return NULL;
}

/* What is mapped no more, or NULL. */
static void sim_own_end(struct sim_own *own)
{
	if (!own)
		return;
	sim_add(SIM_LIVE_OWN_MAPPINGS, -1);
	sim_inject(SIM_INJECT_AFTER_DMA_UNMAP, own->alloc);
	sim_alloc_put(own->alloc);
	kfree(own);
}

static void sim_dma_unmap_resource(struct device *dev, dma_addr_t addr,
				   size_t size, enum dma_data_direction dir,
				   unsigned long attrs)
{
	struct sim_own *own = sim_own_take(dev, addr);

	if (own)
		sim_inject(SIM_INJECT_IN_DMA_UNMAP, own->alloc);
	sim_real_unmap(dev, addr, size, dir, attrs);
	sim_own_end(own);
}

#ifdef LAB_DMA_RANGES
static bool sim_iova_try_alloc(struct device *dev, struct dma_iova_state *state,
			       phys_addr_t phys, size_t size)
{
	struct sim_alloc *alloc = sim_own_alloc(phys);
	bool taken;

	if (alloc)
		sim_inject(SIM_INJECT_IN_DMA_MAP, alloc);
	taken = dma_iova_try_alloc(dev, state, phys, size);
	barrier();
	if (alloc && taken)
		sim_own_add(dev, state->addr, alloc);
	else if (alloc)
		sim_alloc_put(alloc);
	return taken;
}

static void sim_iova_destroy(struct device *dev, struct dma_iova_state *state,
			     size_t mapped, enum dma_data_direction dir,
			     unsigned long attrs)
{
	struct sim_own *own = sim_own_take(dev, state->addr);

	if (own)
		sim_inject(SIM_INJECT_IN_DMA_UNMAP, own->alloc);
	dma_iova_destroy(dev, state, mapped, dir, attrs);
	barrier();
	sim_own_end(own);
}
#endif

/* Everybody's calls are led here, but for our own. */
static void notrace sim_divert(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
	if (!within_module(parent_ip, THIS_MODULE))
		ftrace_regs_set_instruction_pointer(fregs,
						    (unsigned long)ops->private);
}

struct sim_diversion {
	void *from;
	struct ftrace_ops ops;
};

#define SIM_DIVERSION(function, to) {					\
	.from = (function),						\
	.ops.func = sim_divert,						\
	.ops.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_RECURSION |	\
		     LAB_SAVES_REGS,					\
	.ops.private = (to),						\
}

static struct sim_diversion sim_diversions[] = {
	SIM_DIVERSION(dma_map_resource, sim_dma_map_resource),
	SIM_DIVERSION(dma_unmap_resource, sim_dma_unmap_resource),
#ifdef LAB_DMA_RANGES
	SIM_DIVERSION(dma_iova_try_alloc, sim_iova_try_alloc),
	SIM_DIVERSION(dma_iova_destroy, sim_iova_destroy),
#endif
};

static int sim_divert_start(struct sim_diversion *diversion)
{
	struct ftrace_ops *ops = &diversion->ops;
	int ret = ftrace_set_filter_ip(ops, (unsigned long)diversion->from, 0, 0);

	if (!ret)
		ret = register_ftrace_function(ops);
	if (ret)
		ftrace_free_filter(ops);
	return ret;
}

/* The first @count of them. */
static void sim_divert_end(size_t count)
{
	while (count--) {
		unregister_ftrace_function(&sim_diversions[count].ops);
		ftrace_free_filter(&sim_diversions[count].ops);
	}
}

int sim_own_dma_init(void)
{
	size_t i;
	int ret;

	if (!sim_own_dma)
		return 0;
	for (i = 0; i < ARRAY_SIZE(sim_diversions); i++) {
		ret = sim_divert_start(&sim_diversions[i]);
		if (ret) {
			sim_divert_end(i);
			return ret;
		}
	}
	return 0;
}

/* No module that maps GPU memory is left, so nobody is in here any more. */
void sim_own_dma_exit(void)
{
	if (sim_own_dma)
		sim_divert_end(ARRAY_SIZE(sim_diversions));
}

#else

int sim_own_dma_init(void)
{
	sim_own_dma = false;
	return 0;
}

void sim_own_dma_exit(void)
{
}

#endif
