// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The function that the NVIDIA driver calls when revocably pinned memory is freed. The function
 * has its own module, which stays loaded.
 *
 * The driver does not tell whether unpinning has found the pin. Memory may therefore stay pinned
 * after its registration has ended, and its callback may come at any later time, even after
 * nv_peer_mem was unloaded. The callback must always find code, so this module is never
 * unloaded. The number of a registration is never used again, so a late callback finds nothing
 * to do. This module uses neither the driver nor the RDMA core, so both can be unloaded.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/rwsem.h>

#include "callback.h"

/*
 * The thread that frees memory takes this lock under the driver's lock, and holds this lock while
 * the handler runs. This lock therefore comes before every lock that the handler takes.
 */
static DECLARE_RWSEM(gate);
static void (*revoke)(void *number);
static atomic64_t last_number;

void nvpm_callback(void *number)
{
	down_read(&gate);
	if (revoke)
		revoke(number);
	up_read(&gate);
}
/* The symbol is not GPL-only, because nv_peer_mem must load beside a proprietary driver. */
EXPORT_SYMBOL(nvpm_callback);

int nvpm_callback_serve(u32 interface, void (*handler)(void *number))
{
	if (interface != NVPM_CALLBACK_INTERFACE)
		return -EPROTONOSUPPORT;
	down_write(&gate);
	revoke = handler;
	up_write(&gate);
	return 0;
}
EXPORT_SYMBOL(nvpm_callback_serve);

u64 nvpm_callback_number(void)
{
	return atomic64_inc_return(&last_number);
}
EXPORT_SYMBOL(nvpm_callback_number);

static int __init callback_init(void)
{
	/*
	 * A module without an exit function cannot be unloaded. Without this reference, modprobe -r
	 * would nevertheless try to unload the module.
	 */
	__module_get(THIS_MODULE);
	return 0;
}
module_init(callback_init);

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("Receives the NVIDIA driver's callbacks for nv_peer_mem; stays loaded");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(NVPM_VERSION);
