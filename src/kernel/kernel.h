/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The functions between C and Rust of the module's own `kernel` crate. The C functions call only
 * functions and macros that every kernel has.
 */
#ifndef NVPM_KERNEL_H
#define NVPM_KERNEL_H

#include <linux/types.h>

/*
 * In Rust: nvpm_load() initializes the module, and returns 0 or a negative error number.
 * nvpm_unload() undoes all steps of nvpm_load().
 */
int nvpm_load(void);
void nvpm_unload(void);

/*
 * Logs @len bytes of text as an error (@level 3), a warning (4) or information (6). Other levels
 * log an emergency.
 */
void nvpm_print(int level, const u8 *text, size_t len);
/* Calls BUG(), which does not return. */
void nvpm_bug(void);

/* Returns memory aligned to 8 bytes, or NULL. May sleep. */
void *nvpm_alloc(size_t size);
/* Frees memory from nvpm_alloc(). May sleep if the memory is large. */
void nvpm_free(void *memory);

#endif
