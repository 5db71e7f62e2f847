// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preloaded library that gives a program GPU memory for its queues. libmlx5 allocates the buffers
 * of completion queues, queue pairs and doorbells by posix_memalign(), in whole pages.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab_gpu.h"

#define MOST 64
#define GPU_PAGE 0x10000ul

static struct {
	void *start;
	size_t size;
} given[MOST];

static void *gpu_memory(size_t size)
{
	int gpu = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	void *start;

	if (gpu < 0)
		return MAP_FAILED;
	start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, LAB_GPU_ANYWHERE);
	close(gpu);
	return start;
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
	size_t rounded = (size + GPU_PAGE - 1) & ~(GPU_PAGE - 1);
	void *start;

	if (alignment >= (size_t)sysconf(_SC_PAGESIZE))
		for (int i = 0; i < MOST; i++) {
			if (given[i].start)
				continue;
			start = gpu_memory(rounded);
			if (start == MAP_FAILED)
				abort();
			given[i].start = start;
			given[i].size = rounded;
			*result = start;
			return 0;
		}
	*result = aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
	return *result ? 0 : -1;
}

void free(void *start)
{
	static void (*next)(void *);

	for (int i = 0; start && i < MOST; i++)
		if (given[i].start == start) {
			given[i].start = NULL;
			munmap(start, given[i].size);
			return;
		}
	if (!next)
		next = (void (*)(void *))(uintptr_t)dlsym(RTLD_NEXT, "free");
	next(start);
}
