// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The way from nv_peer_mem_callback, which the driver calls, to Rust.
 */
#include "nvpm.h"

/* In C, since kernels that check indirect calls go by the type that C gives a function. */
static void nvpm_handle_callback(void *number)
{
	nvpm_revoke((uintptr_t)number);
}

int nvpm_callbacks_begin(void)
{
	return nvpm_callback_serve(NVPM_CALLBACK_INTERFACE, nvpm_handle_callback);
}

void nvpm_callbacks_end(void)
{
	nvpm_callback_serve(NVPM_CALLBACK_INTERFACE, NULL);
}
