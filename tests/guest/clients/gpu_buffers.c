// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Preloaded into a program that knows nothing of GPUs: moves its buffers there.
 *
 * memalign() and posix_memalign() of whole pages, and malloc() of exactly as many
 * bytes as $GPU_MALLOC says, get GPU memory that the CPU may touch as well,
 * since such programs fill and compare their buffers themselves. No two
 * programs that share a GPU get the same memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab_gpu.h"

#define BUFFERS	16

static struct buffer {
	void *address;
	size_t size;
} buffers[BUFFERS];

static void *gpu_alloc(size_t size)
{
	struct buffer *b = buffers;
	int fd;

	while (b->address)
		if (++b == buffers + BUFFERS)
			abort();
	fd = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	b->address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  LAB_GPU_ANYWHERE);
	close(fd);
	if (b->address == MAP_FAILED) {
		b->address = NULL;
		return NULL;
	}
	b->size = size;
	return b->address;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
	int (*next)(void **memory, size_t alignment, size_t size);

	if (alignment % (size_t)getpagesize()) {
		next = dlsym(RTLD_NEXT, "posix_memalign");
		return next(memory, alignment, size);
	}
	*memory = gpu_alloc(size);
	return *memory ? 0 : ENOMEM;
}

void *memalign(size_t alignment, size_t size)
{
	void *(*next)(size_t alignment, size_t size);

	if (alignment % (size_t)getpagesize() == 0)
		return gpu_alloc(size);
	next = dlsym(RTLD_NEXT, "memalign");
	return next(alignment, size);
}

void *malloc(size_t size)
{
	const char *wanted = getenv("GPU_MALLOC");
	void *(*next)(size_t size);

	if (size && wanted && (size_t)atol(wanted) == size)
		return gpu_alloc(size);
	next = dlsym(RTLD_NEXT, "malloc");
	return next(size);
}

void free(void *memory)
{
	struct buffer *b = buffers;
	void (*next)(void *memory);

	while (b < buffers + BUFFERS && (!memory || b->address != memory))
		b++;
	if (b < buffers + BUFFERS) {
		b->address = NULL;
		munmap(memory, b->size);
		return;
	}
	next = dlsym(RTLD_NEXT, "free");
	next(memory);
}
