// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NVIDIA's own code: nv-p2p.c of the open driver, as it is, where every client's call arrives
 * and leaves. Its functions are called driver_ here and not nvidia_p2p_ (Kbuild), since
 * exports.c is around them.
 *
 * Of its headers those are read that are small (driver.h); in place of the others, which
 * are all of the driver, driver.h is. They are named by what keeps them from being read
 * twice. So is nv-p2p.h, which may be of another generation than the code.
 */
#include "driver.h"
#include "sim.h"

#define _NV_P2P_H_
#define _NV_LINUX_H_
#define _NV_IBMNPU_H_
#define _NV_RSYNC_H_
#define OS_INTERFACE_H

#include <nv-p2p.c>

/* The memory that a table is in. */
void *driver_memory(struct nvidia_p2p_page_table *table)
{
	return container_of(table, nv_p2p_mem_info_t, page_table);
}

/* The client is called through sim_pin_tell(), which knows the pin. */
void driver_lead(void *memory, struct sim_pin *pin)
{
	nv_p2p_mem_info_t *info = memory;

	pin->free_callback = info->free_callback;
	pin->data = info->data;
	info->free_callback = sim_pin_tell;
	info->data = pin;
}
