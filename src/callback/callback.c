// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This module contains the free callback, which is the function that the NVIDIA driver calls when
 * revocably pinned memory is freed. The module stays loaded until the next boot.
 *
 * When nv_peer_mem unpins memory, the driver does not report whether it has found the pin. Memory
 * may therefore stay pinned after its registration has ended, and the driver may call back at any
 * later time, even after nv_peer_mem was unloaded. This module must not be unloaded, because the
 * driver would then call code that does not exist any more. A late callback does nothing, because
 * its number belongs to no registration any more, and numbers are not used again. This module uses
 * no symbols of the driver and of the RDMA core, so both can be unloaded.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/rwsem.h>

#include "callback.h"

/*
 * The gate is held in shared mode while the handler runs. The driver calls nvpm_callback() with its
 * own lock held, so the gate is taken after the driver's lock, and before every lock that the
 * handler takes.
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
/*
 * The export is not GPL-only, because nv_peer_mem may also use a proprietary driver, and a module
 * that does so cannot use GPL-only symbols.
 */
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
	 * A module without an exit function cannot be unloaded. As long as the module has this
	 * reference, modprobe -r does not try to unload it. Without the reference, modprobe -r
	 * would try, and report an error.
	 */
	__module_get(THIS_MODULE);
	return 0;
}
module_init(callback_init);

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("Receives the NVIDIA driver's callbacks for nv_peer_mem; stays loaded");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(NVPM_VERSION);
