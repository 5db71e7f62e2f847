/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between nv_peer_mem and nv_peer_mem_callback. nv_peer_mem_callback stays loaded
 * until the next boot, so it must also work with older and newer versions of nv_peer_mem. These
 * declarations must therefore never change. The names of the parameters must not change either,
 * because they are part of a symbol's version in kernels with CONFIG_GENDWARFKSYMS. A changed
 * interface must have another number, because nvpm_callback_serve() refuses numbers that it does
 * not know.
 */
#ifndef NVPM_CALLBACK_H
#define NVPM_CALLBACK_H

#include <linux/types.h>

#define NVPM_CALLBACK_INTERFACE 1

/*
 * The driver calls this function when revocably pinned memory is freed. @number is the number of
 * the registration.
 */
void nvpm_callback(void *number);

/*
 * Makes each later callback call @handler. If @handler is NULL, each later callback does nothing.
 * When this function returns, the handler that was set before is not running any more. Returns 0,
 * or -EPROTONOSUPPORT if @interface is not known.
 */
int nvpm_callback_serve(u32 interface, void (*handler)(void *number));

/* Returns a number that is not 0, and that no registration has had since the system was booted. */
u64 nvpm_callback_number(void);

#endif
