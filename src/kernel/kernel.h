/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * C functions for the module's own `kernel` crate. They call functions and macros that every
 * kernel has.
 */
#ifndef NVPM_KERNEL_H
#define NVPM_KERNEL_H

#include <linux/types.h>

/* In Rust: begins the module, and returns 0 or a negative error number; ends the module. */
int nvpm_load(void);
void nvpm_unload(void);

/* Logs @len bytes of text as an error (3), a warning (4), information (6), or worse. */
void nvpm_print(int level, const u8 *text, size_t len);
/* Calls BUG(), which does not return. */
void nvpm_bug(void);

/* Returns memory aligned to 8 bytes, which may be pages if it is large, or NULL. Sleeps. */
void *nvpm_alloc(size_t size);
void nvpm_free(void *memory);

#endif
