// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * NVIDIA's own code, which is the unchanged nv-p2p.c of the open driver. It handles every call of a
 * client. Kbuild renames its functions from nvidia_p2p_ to driver_. exports.c has functions with
 * the original names, which call the renamed functions.
 *
 * driver.h includes only small headers of NVIDIA's, and replaces the others, because those would
 * include the whole driver. To keep nv-p2p.c from including the replaced headers, this file defines
 * their include guards. It also defines the guard of nv-p2p.h, whose generation may differ from
 * that of nv-p2p.c.
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

/* Makes NVIDIA's code call sim_pin_tell() for this pin instead of the client's callback. */
void driver_lead(void *memory, struct sim_pin *pin)
{
	nv_p2p_mem_info_t *info = memory;

	pin->free_callback = info->free_callback;
	pin->data = info->data;
	info->free_callback = sim_pin_tell;
	info->data = pin;
}
