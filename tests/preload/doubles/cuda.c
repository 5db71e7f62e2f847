// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A libcuda.so.1 for tests of the preloaded library. Two ranges of addresses are GPU memory. The
 * memory of the pool belongs to the second GPU. A dma-buf of such memory is a file of the same size. To make a function fail, a test sets an
 * environment variable that has the function's name in capitals. The function then returns the
 * number in the variable.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doubles.h"

enum {
	SUCCESS,
	INVALID_VALUE = 1,
	NOT_INITIALIZED = 3,
	INVALID_CONTEXT = 201,
	OPERATING_SYSTEM = 304,
};

enum { CONTEXT = 1, MEMORY_TYPE = 2, SYNC_MEMOPS = 6, DEVICE_ORDINAL = 9 };

#define OWN_CONTEXT	((void *)0xc0)
#define GPUS		2
#define DEVICE		7

static pid_t process;
static _Thread_local void *stack[8];
static _Thread_local int depth;
static atomic_int pushed, retained[GPUS];

/* Returns the primary context of a GPU. */
static void *primary_context(int gpu)
{
	return (char *)OWN_CONTEXT + 1 + gpu;
}

/* Returns whether this is the primary context of a GPU that nothing retains, or of no GPU. */
static bool is_gone(void *context)
{
	for (int gpu = 0; gpu < GPUS; gpu++)
		if (context == primary_context(gpu))
			return !retained[gpu];
	return false;
}

__attribute__((constructor)) static void begin(void)
{
	process = getpid();
}

__attribute__((destructor)) static void end(void)
{
	event("left pushed=%d retained=%d\n", pushed, retained[0] + retained[1]);
}

/*
 * Each function calls this function at its beginning. It returns an error in a child of fork(), or
 * if a test has requested an error.
 */
static int called(const char *name)
{
	event("%s\n", name);
	if (getpid() != process)
		return NOT_INITIALIZED;
	return told(name);
}

int cuInit(unsigned int flags)
{
	int fd = open(UVM, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	unlink(UVM);
	return flags || fd < 0 ? NOT_INITIALIZED : SUCCESS;
}

int cuGetErrorName(int code, const char **name)
{
	if (told(__func__))
		return told(__func__);
	*name = code == OPERATING_SYSTEM ? "CUDA_ERROR_OPERATING_SYSTEM" : "CUDA_ERROR_OF_THE_DOUBLE";
	return SUCCESS;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer)
{
	int error = called(__func__);
	bool pool = in_gpu(pointer, GPU_POOL, 0);

	if (error)
		return error;
	if (in_gpu(pointer, PINNED_HOST, 0) && attribute == MEMORY_TYPE) {
		*(unsigned int *)value = 1;
		return SUCCESS;
	}
	if (!pool && !in_gpu(pointer, GPU_MEMORY, 0))
		return INVALID_VALUE;
	switch (attribute) {
	case CONTEXT:
		*(void **)value = pool ? NULL : OWN_CONTEXT;
		return SUCCESS;
	case MEMORY_TYPE:
		*(unsigned int *)value = 2;
		return SUCCESS;
	case DEVICE_ORDINAL:
		*(int *)value = pool;
		return SUCCESS;
	}
	return INVALID_VALUE;
}

int cuPointerSetAttribute(const void *value, int attribute, uint64_t pointer)
{
	int error = called(__func__);

	if (error)
		return error;
	if (attribute != SYNC_MEMOPS)
		return INVALID_VALUE;
	event("sync_memops %#lx %u\n", pointer, *(const unsigned int *)value);
	return SUCCESS;
}

int cuCtxGetCurrent(void **context)
{
	int error = called(__func__);

	if (error)
		return error;
	*context = depth ? stack[depth - 1] : NULL;
	return SUCCESS;
}

int cuCtxPushCurrent_v2(void *context)
{
	int error = called(__func__);

	if (error)
		return error;
	if (is_gone(context))
		return INVALID_CONTEXT;
	event("push %p\n", context);
	stack[depth++] = context;
	pushed++;
	return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context)
{
	int error = called(__func__);

	if (error)
		return error;
	if (!depth)
		return INVALID_CONTEXT;
	*context = stack[--depth];
	pushed--;
	return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
	int error = called(__func__);

	if (error)
		return error;
	*device = DEVICE + ordinal;
	return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	int error = called(__func__);

	if (error)
		return error;
	if (device < DEVICE || device >= DEVICE + GPUS)
		return INVALID_VALUE;
	*context = primary_context(device - DEVICE);
	retained[device - DEVICE]++;
	return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	int error = called(__func__);

	if (error)
		return error;
	if (device < DEVICE || device >= DEVICE + GPUS)
		return INVALID_VALUE;
	retained[device - DEVICE]--;
	return SUCCESS;
}

#ifndef OLD
int cuMemGetHandleForAddressRange(void *handle, uint64_t start, size_t size, int type,
				  unsigned long long flags)
{
	int error = called(__func__);
	int fd;

	if (error)
		return error;
	if (!depth)
		return INVALID_CONTEXT;
	if (type != 1 || flags || !size || (start | size) & (getpagesize() - 1))
		return INVALID_VALUE;
	if (!in_gpu(start, GPU_MEMORY, size) && !in_gpu(start, GPU_POOL, size))
		return INVALID_VALUE;
	fd = memfd_create("dma-buf", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, size)) {
		/* libcuda returns only this code. It does not set errno. */
		errno = 0;
		return OPERATING_SYSTEM;
	}
	event("export %#lx %zu\n", start, size);
	*(int *)handle = fd;
	return SUCCESS;
}
#endif
