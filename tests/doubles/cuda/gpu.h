/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The GPUs below libcuda. The functions exist twice: in gpu_simulated.c for the simulated GPU of a
 * guest, and in gpu_host.c for programs that run without a GPU's driver.
 */
#ifndef LAB_CUDA_GPU_H
#define LAB_CUDA_GPU_H

#include <stddef.h>

#include "cuda.h"

/* The most GPUs. */
#define GPUS	2

/* The device of the first GPU. The devices of further GPUs follow. */
extern const CUdevice gpu_first;

/* Finds the GPUs, and stores domain, bus, device and function of each. Returns their number. */
int gpu_find(unsigned int pci[GPUS][4]);

/* Properties of memory: the driver pins none of it for others; the CPU can access it. */
#define GPU_NO_P2P	1
#define GPU_CPU		2

/*
 * Maps new memory of a GPU with these properties at an address. Returns the result of mmap(), whose
 * error is EEXIST if something else is mapped there.
 */
void *gpu_map(void *address, size_t size, int properties);

/* Returns a dma-buf of a part of this memory, or -1. */
int gpu_export(CUdeviceptr address, size_t size);

#endif
