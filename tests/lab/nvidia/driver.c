// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NVIDIA's own code: the unchanged nv-p2p.c of the open driver, where every client's call
 * arrives and leaves. Its functions are called driver_ here instead of nvidia_p2p_ (Kbuild),
 * because exports.c wraps them.
 *
 * Only its small headers are read (driver.h); driver.h also replaces the other headers, which
 * would bring in the whole driver. The macros that keep headers from being read twice are
 * defined here. The same is done with nv-p2p.h, whose generation may differ from the code's.
 */
#include "driver.h"
#include "sim.h"

#define _NV_P2P_H_
#define _NV_LINUX_H_
#define _NV_IBMNPU_H_
#define _NV_RSYNC_H_
#define OS_INTERFACE_H

#include <nv-p2p.c>

/* Returns the memory that contains a table. */
void *driver_memory(struct nvidia_p2p_page_table *table)
{
	return container_of(table, nv_p2p_mem_info_t, page_table);
}

/* Makes NVIDIA's code call sim_pin_tell(), which knows the pin, in place of the client. */
void driver_lead(void *memory, struct sim_pin *pin)
{
	nv_p2p_mem_info_t *info = memory;

	pin->free_callback = info->free_callback;
	pin->data = info->data;
	info->free_callback = sim_pin_tell;
	info->data = pin;
}
