/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of the lab's libcuda.so.1 share: the buffers, and how a function begins. */
#ifndef LAB_CUDA_BUFFERS_H
#define LAB_CUDA_BUFFERS_H

#include <stdbool.h>

#include "cuda.h"

#define BLOCK		(2ULL << 20)
#define BLOCKS(size)	(((size) + BLOCK - 1) / BLOCK * BLOCK)

struct buffer {
	CUdeviceptr start;
	size_t size;	/* 0: this place is free */
	CUmemorytype type;
	int gpu;
	int properties;	/* those of gpu.h */
	CUcontext context;	/* NULL: memory of a pool, or that a program has mapped by itself */
	unsigned long long id;
	unsigned int sync_memops;
	bool is_managed;
};

#define HIDDEN	__attribute__((visibility("hidden")))

/* Begins a function for which the thread needs a context. Most functions need one. */
HIDDEN CUresult ready(const char *function);
/* Returns the buffer around an address, or NULL. */
HIDDEN struct buffer *find(CUdeviceptr address);
/* Makes a buffer at its own address, or at the first one with room, and stores the address. */
HIDDEN CUresult allocate(CUdeviceptr *address, struct buffer wanted);
/* Makes room for other memory, and unmaps the buffer. */
HIDDEN CUresult release(struct buffer *buffer);
/* Counts a buffer that was freed. */
HIDDEN void was_freed(void);

#endif
