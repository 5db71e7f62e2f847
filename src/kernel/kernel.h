/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * C functions behind our `kernel` crate, for what every kernel has as a function or
 * a macro.
 */
#ifndef NVPM_KERNEL_H
#define NVPM_KERNEL_H

#include <linux/types.h>

/* Made of Rust: the module's beginning, 0 or a negative error number, and its end. */
int nvpm_load(void);
void nvpm_unload(void);

/* @len bytes of text for the log: an error (3), warning (4), information (6), or worse. */
void nvpm_print(int level, const u8 *text, size_t len);
/* BUG(), which does not return. */
void nvpm_bug(void);

/* Memory aligned to 8 bytes, of pages if it is large, or NULL; sleeps. */
void *nvpm_alloc(size_t size);
void nvpm_free(void *memory);

#endif
