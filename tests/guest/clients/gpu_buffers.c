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

static struct buffer {
	void *address;
	size_t size;
} buffers[16];

static void *gpu_alloc(size_t size)
{
	struct buffer *b = buffers;
	int fd;

	while (b->address)
		if (++b == buffers + sizeof(buffers) / sizeof(*buffers))
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
	int (*real)(void **, size_t, size_t) = dlsym(RTLD_NEXT, "posix_memalign");

	if (alignment % (size_t)getpagesize())
		return real(memory, alignment, size);
	*memory = gpu_alloc(size);
	return *memory ? 0 : ENOMEM;
}

void *memalign(size_t alignment, size_t size)
{
	void *(*real)(size_t, size_t) = dlsym(RTLD_NEXT, "memalign");

	return alignment % (size_t)getpagesize() ? real(alignment, size) : gpu_alloc(size);
}

void *malloc(size_t size)
{
	extern void *__libc_malloc(size_t);
	const char *wanted = size ? getenv("GPU_MALLOC") : NULL;

	return wanted && (size_t)atol(wanted) == size ? gpu_alloc(size) : __libc_malloc(size);
}

void free(void *memory)
{
	extern void __libc_free(void *);
	struct buffer *b;

	for (b = buffers; b < buffers + sizeof(buffers) / sizeof(*buffers); b++) {
		if (!memory || b->address != memory)
			continue;
		b->address = NULL;
		munmap(memory, b->size);
		return;
	}
	__libc_free(memory);
}
