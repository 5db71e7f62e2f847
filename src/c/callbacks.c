// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Passes the driver's callbacks, which come through nv_peer_mem_callback, on to Rust.
 */
#include "nvpm.h"

/* This function is in C, because kernels that check indirect calls check its C type. */
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
