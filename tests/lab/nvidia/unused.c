// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Exports that do nothing in drivers with open modules.
 *
 * free_page_table and free_dma_mapping are for callbacks of old: the driver
 * frees both itself after the callback. init_mapping and destroy_mapping are
 * not supported. One rsync driver may register; there are no registers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/spinlock.h>

#include "sim.h"

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	struct sim_pin *pin;
	int ret;

	CLASS(sim_call, call)(SIM_FREE_PAGE_TABLE);
	ret = sim_fail(SIM_FREE_PAGE_TABLE);
	pin = sim_pin_find(&sim_gpu, page_table);
	if (pin ? READ_ONCE(pin->state) == SIM_PIN_PUT :
	    !READ_ONCE(sim_gpu.evicted))
		sim_violation(SIM_BAD_NOOP_FREE,
			      "free_page_table of %p, %s, from %pS", page_table,
			      pin ? "which was put" : "which is no page table",
			      SIM_CALLER);
	sim_pin_drop(pin);
	return ret;
}
SIM_EXPORT(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	struct sim_mapping *m;
	int ret;

	CLASS(sim_call, call)(SIM_FREE_DMA_MAPPING);
	ret = sim_fail(SIM_FREE_DMA_MAPPING);
	m = sim_mapping_find(&sim_gpu, dma_mapping);
	if (m ? READ_ONCE(m->pin->state) == SIM_PIN_PUT :
	    !READ_ONCE(sim_gpu.evicted))
		sim_violation(SIM_BAD_NOOP_FREE,
			      "free_dma_mapping of %p, %s, from %pS",
			      dma_mapping, m ? "whose page table was put" :
			      "which is no DMA mapping", SIM_CALLER);
	sim_mapping_drop(m);
	return ret;
}
SIM_EXPORT(nvidia_p2p_free_dma_mapping);

int nvidia_p2p_init_mapping(u64 p2p_token, struct nvidia_p2p_params *params,
			    void (*destroy_callback)(void *data), void *data)
{
	CLASS(sim_call, call)(SIM_INIT_MAPPING);
	return -ENOTSUPP;
}
SIM_EXPORT(nvidia_p2p_init_mapping);

int nvidia_p2p_destroy_mapping(u64 p2p_token)
{
	CLASS(sim_call, call)(SIM_DESTROY_MAPPING);
	return -ENOTSUPP;
}
SIM_EXPORT(nvidia_p2p_destroy_mapping);

static DEFINE_SPINLOCK(rsync_lock);
static struct nvidia_p2p_rsync_driver *rsync_driver;
static void *rsync_data;

int nvidia_p2p_register_rsync_driver(struct nvidia_p2p_rsync_driver *driver,
				     void *data)
{
	int ret;

	CLASS(sim_call, call)(SIM_REGISTER_RSYNC_DRIVER);
	ret = sim_fail(SIM_REGISTER_RSYNC_DRIVER);
	if (ret)
		return ret;
	if (!driver || !NVIDIA_P2P_RSYNC_DRIVER_VERSION_COMPATIBLE(driver) ||
	    !driver->get_relaxed_ordering_mode ||
	    !driver->put_relaxed_ordering_mode || !driver->wait_for_rsync)
		return -EINVAL;

	spin_lock(&rsync_lock);
	if (rsync_driver) {
		ret = -EBUSY;
	} else {
		rsync_driver = driver;
		rsync_data = data;
		sim_add(SIM_LIVE_RSYNC_DRIVERS, 1);
	}
	spin_unlock(&rsync_lock);
	return ret;
}
SIM_EXPORT(nvidia_p2p_register_rsync_driver);

void nvidia_p2p_unregister_rsync_driver(struct nvidia_p2p_rsync_driver *driver,
					void *data)
{
	bool mine;

	CLASS(sim_call, call)(SIM_UNREGISTER_RSYNC_DRIVER);
	spin_lock(&rsync_lock);
	mine = driver && rsync_driver == driver && rsync_data == data;
	if (mine) {
		rsync_driver = NULL;
		rsync_data = NULL;
		sim_add(SIM_LIVE_RSYNC_DRIVERS, -1);
	}
	spin_unlock(&rsync_lock);
	if (!mine)
		sim_violation(SIM_BAD_RSYNC,
			      "unregister_rsync_driver of one that is not registered, from %pS",
			      SIM_CALLER);
}
SIM_EXPORT(nvidia_p2p_unregister_rsync_driver);

int nvidia_p2p_get_rsync_registers(struct nvidia_p2p_rsync_reg_info **reg_info)
{
	CLASS(sim_call, call)(SIM_GET_RSYNC_REGISTERS);
	return -ENODEV;
}
SIM_EXPORT(nvidia_p2p_get_rsync_registers);

void nvidia_p2p_put_rsync_registers(struct nvidia_p2p_rsync_reg_info *reg_info)
{
	CLASS(sim_call, call)(SIM_PUT_RSYNC_REGISTERS);
	if (reg_info)
		sim_violation(SIM_BAD_RSYNC,
			      "put_rsync_registers of what nobody can have got, from %pS",
			      SIM_CALLER);
}
SIM_EXPORT(nvidia_p2p_put_rsync_registers);
