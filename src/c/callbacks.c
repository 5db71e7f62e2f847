// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Passes the driver's callbacks on from nv_peer_mem_callback to Rust.
 */
#include "nvpm.h"

/*
 * This function is in C, because some kernels check the C type of a function that is called through
 * a pointer.
 */
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
