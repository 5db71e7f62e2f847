/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between nv_peer_mem and nv_peer_mem_callback. The latter stays loaded until the
 * next boot, and then serves older and newer versions of nv_peer_mem. So these functions
 * never change, nor do the names of their parameters, which are part of a symbol's version
 * in kernels with CONFIG_GENDWARFKSYMS. A different interface gets another number, and
 * nvpm_callback_serve() refuses unknown numbers.
 */
#ifndef NVPM_CALLBACK_H
#define NVPM_CALLBACK_H

#include <linux/types.h>

#define NVPM_CALLBACK_INTERFACE 1

/* The driver calls this with the number of the registration when pinned memory is freed. */
void nvpm_callback(void *number);

/*
 * From now on @handler is called for each callback; for none of them if it is NULL, and then
 * it is not running any more when this returns. -EPROTONOSUPPORT if @interface is not known.
 */
int nvpm_callback_serve(u32 interface, void (*handler)(void *number));

/* A number that no registration has had since the system was booted; never 0. */
u64 nvpm_callback_number(void);

#endif
