/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of the simulated GPU, for programs in C. Whatever fails ends the
 * program, with a line that says what it was.
 */
#ifndef GPU_H
#define GPU_H

#include <stddef.h>
#include <stdint.h>

/* @length bytes, rounded up to whole GPU pages, at @offset in the BAR. */
void *gpu_alloc(off_t offset, size_t length);
void gpu_free(void *memory, size_t length);

/*
 * From here on the CPU faults at each access, as it does with what cudaMalloc
 * returns; and from here on it does not.
 */
void gpu_hide(void *memory, size_t length);
void gpu_show(void *memory, size_t length);

/* The pattern of a seed, the same as in gpuverbs/src/pattern.rs. */
void pattern_put(void *memory, size_t length, uint64_t seed);
void poison(void *memory, size_t length);

/* Makes the file, and waits until somebody removes it. */
void hold(const char *file);

_Noreturn void die(const char *what);

#endif
