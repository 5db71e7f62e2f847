/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between nv_peer_mem and nv_peer_mem_callback. nv_peer_mem_callback stays loaded
 * until the next boot, so it must also serve older and newer versions of nv_peer_mem. These
 * functions therefore never change, nor do the names of their parameters, which are part of a
 * symbol's version in kernels with CONFIG_GENDWARFKSYMS. A different interface gets another
 * number, and nvpm_callback_serve() refuses unknown numbers.
 */
#ifndef NVPM_CALLBACK_H
#define NVPM_CALLBACK_H

#include <linux/types.h>

#define NVPM_CALLBACK_INTERFACE 1

/* The driver calls this with the number of the registration when pinned memory is freed. */
void nvpm_callback(void *number);

/*
 * Has @handler called for each callback from now on. If @handler is NULL, callbacks are ignored,
 * and no handler is running any more when the function returns. Returns -EPROTONOSUPPORT if
 * @interface is not known.
 */
int nvpm_callback_serve(u32 interface, void (*handler)(void *number));

/* Returns a number, not 0, that no registration has had since the system was booted. */
u64 nvpm_callback_number(void);

#endif
