// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPU memory that a client maps for its device by itself.
 *
 * A client that must not rely on the page table once the callback may come
 * copies the addresses and maps them with the kernel's dma_map_resource(). The
 * driver has no part in that; so that memory can be freed in the middle of it
 * all the same, both kernel functions are led through here with ftrace, as live
 * patches are. Mappings of GPU memory are counted, and frees can be injected at the
 * points called in_, before the real function, and after_, behind it.
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

static dma_addr_t sim_dma_map_resource(struct device *dev, phys_addr_t phys,
				       size_t size, enum dma_data_direction dir,
				       unsigned long attrs)
{
	struct sim_alloc *alloc = NULL;
	struct sim_own *own;
	dma_addr_t addr;

	if (phys >= sim_gpu.bar && phys - sim_gpu.bar < sim_gpu.size)
		alloc = sim_alloc_at(&sim_gpu, phys);
	if (!alloc)
		return sim_real_map(dev, phys, size, dir, attrs);

	own = kzalloc_obj(*own, GFP_KERNEL | __GFP_NOFAIL);
	sim_inject(SIM_INJECT_IN_DMA_MAP, alloc);
	addr = sim_real_map(dev, phys, size, dir, attrs);
	if (dma_mapping_error(dev, addr)) {
		sim_alloc_put(alloc);
		kfree(own);
		return addr;
	}
	own->dev = dev;
	own->addr = addr;
	own->alloc = alloc;
	spin_lock_irq(&sim_owns_lock);
	list_add(&own->node, &sim_owns);
	spin_unlock_irq(&sim_owns_lock);
	sim_add(SIM_LIVE_OWN_MAPPINGS, 1);
	sim_inject(SIM_INJECT_AFTER_DMA_MAP, alloc);
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

static void sim_dma_unmap_resource(struct device *dev, dma_addr_t addr,
				   size_t size, enum dma_data_direction dir,
				   unsigned long attrs)
{
	struct sim_own *own = sim_own_take(dev, addr);

	if (own)
		sim_inject(SIM_INJECT_IN_DMA_UNMAP, own->alloc);
	sim_real_unmap(dev, addr, size, dir, attrs);
	if (!own)
		return;
	sim_add(SIM_LIVE_OWN_MAPPINGS, -1);
	sim_inject(SIM_INJECT_AFTER_DMA_UNMAP, own->alloc);
	sim_alloc_put(own->alloc);
	kfree(own);
}

/* Everybody's calls are led here, but for our own. */
static void notrace sim_divert(unsigned long ip, unsigned long parent_ip,
			       struct ftrace_ops *ops,
			       struct ftrace_regs *fregs)
{
	if (!within_module(parent_ip, THIS_MODULE))
		ftrace_regs_set_instruction_pointer(fregs,
						    (unsigned long)ops->private);
}

#define SIM_DIVERSION(to) {						\
	.func = sim_divert,						\
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_RECURSION |	\
		 LAB_SAVES_REGS,					\
	.private = (to),						\
}

static struct ftrace_ops sim_diversions[] = {
	SIM_DIVERSION(sim_dma_map_resource),
	SIM_DIVERSION(sim_dma_unmap_resource),
};

static int sim_divert_start(struct ftrace_ops *ops, void *from)
{
	int ret = ftrace_set_filter_ip(ops, (unsigned long)from, 0, 0);

	if (!ret)
		ret = register_ftrace_function(ops);
	if (ret)
		ftrace_free_filter(ops);
	return ret;
}

static void sim_divert_end(struct ftrace_ops *ops)
{
	unregister_ftrace_function(ops);
	ftrace_free_filter(ops);
}

int sim_own_dma_init(void)
{
	int ret;

	if (!sim_own_dma)
		return 0;
	ret = sim_divert_start(&sim_diversions[0], dma_map_resource);
	if (ret)
		return ret;
	ret = sim_divert_start(&sim_diversions[1], dma_unmap_resource);
	if (ret)
		sim_divert_end(&sim_diversions[0]);
	return ret;
}

/* No module that maps GPU memory is left, so nobody is in here any more. */
void sim_own_dma_exit(void)
{
	if (!sim_own_dma)
		return;
	sim_divert_end(&sim_diversions[1]);
	sim_divert_end(&sim_diversions[0]);
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
