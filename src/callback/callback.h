/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What nv_peer_mem and nv_peer_mem_callback agree on. The latter stays loaded until the
 * next boot, and then serves older and newer versions of nv_peer_mem. So these functions
 * never change, nor do the names of their parameters, which are part of a symbol's version
 * in kernels with CONFIG_GENDWARFKSYMS. What must differ gets another number of the
 * interface: nvpm_callback_serve() refuses one that it does not know.
 */
#ifndef NVPM_CALLBACK_H
#define NVPM_CALLBACK_H

#include <linux/types.h>

#define NVPM_CALLBACK_INTERFACE 1

/* What the driver calls when pinned memory is freed, with the number of the registration. */
void nvpm_callback(void *number);

/*
 * From now on @handler is called for each callback; for none of them if it is NULL, and then
 * it is not running any more when this returns. -EPROTONOSUPPORT if @interface is not known.
 */
int nvpm_callback_serve(u32 interface, void (*handler)(void *number));

/* A number that no registration has had since the system was booted; never 0. */
u64 nvpm_callback_number(void);

#endif
