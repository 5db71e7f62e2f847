// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libcuda.so.1 over the simulated GPU: README.md says what it keeps of CUDA's rules.
 * What is not here a program cannot link with, or finds missing.
 *
 * A process uses it from one thread at a time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "lab_gpu.h"

#define BLOCK		(2ULL << 20)
#define STEP		512ULL
#define ROUND_UP(x, to)	(((x) + (to) - 1) / (to) * (to))

/* Addresses are the same in every process, for different memory. */
#define FIRST		0x302000000ULL
#define LIMIT		(1ULL << 36)
#define BUFFERS		4096

struct CUctx_st {
	int users;	/* 0 when it was destroyed, or is the primary one and unused */
};

/* By address. A buffer of less than a block shares one with others, @room is what is its own. */
static struct buffer {
	CUdeviceptr start;
	size_t size, room;
	CUcontext context;
} buffers[BUFFERS];

static int count, gpu = -1, memory;
static pid_t owner;
static unsigned int pci[4];
static struct CUctx_st primary;
static __thread CUcontext current;

/* ---- the device -------------------------------------------------------------- */

CUresult cuInit(unsigned int flags)
{
	glob_t found;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpu >= 0)
		return owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	if (glob("/sys/bus/pci/drivers/nvidia/*:*:*.*", 0, NULL, &found))
		return CUDA_ERROR_NO_DEVICE;
	if (sscanf(strrchr(found.gl_pathv[0], '/'), "/%x:%x:%x.%x", pci, pci + 1, pci + 2, pci + 3) == 4)
		gpu = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	globfree(&found);
	owner = getpid();
	return gpu >= 0 && memory >= 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* A child of fork() has nothing of it. */
static CUresult known(CUdevice device)
{
	if (gpu < 0 || owner != getpid())
		return CUDA_ERROR_NOT_INITIALIZED;
	return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
#define NAME(error) { error, #error }
	static const struct {
		CUresult error;
		const char *name;
	} names[] = {
		NAME(CUDA_SUCCESS), NAME(CUDA_ERROR_INVALID_VALUE), NAME(CUDA_ERROR_OUT_OF_MEMORY),
		NAME(CUDA_ERROR_NOT_INITIALIZED), NAME(CUDA_ERROR_NO_DEVICE), NAME(CUDA_ERROR_INVALID_DEVICE),
		NAME(CUDA_ERROR_INVALID_CONTEXT), NAME(CUDA_ERROR_OPERATING_SYSTEM),
		NAME(CUDA_ERROR_ILLEGAL_ADDRESS), NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED),
		NAME(CUDA_ERROR_NOT_SUPPORTED),
	};
	size_t i;

	*name = NULL;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].error == error)
			*name = names[i].name;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *number)
{
	*number = 1;
	return known(0);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return known(ordinal);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	snprintf(name, size, "Simulated GPU of the lab");
	return known(device);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	snprintf(id, size, "%04X:%02X:%02X.%X", pci[0], pci[1], pci[2], pci[3]);
	return known(device);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_INTEGRATED:
		*value = 0;
		return known(device);
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = pci[1];
		return known(device);
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		*value = pci[2];
		return known(device);
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- memory ------------------------------------------------------------------ */

/* The buffer around an address. */
static struct buffer *find(CUdeviceptr address)
{
	int i;

	for (i = 0; i < count; i++)
		if (address - buffers[i].start < buffers[i].size)
			return &buffers[i];
	return NULL;
}

/* Whether the buffer at @i, if there is one, has a part of the block around an address. */
static int in_block(int i, CUdeviceptr address)
{
	return i >= 0 && i < count && buffers[i].start / BLOCK == address / BLOCK;
}

/* Where @room fits from @at on: what is less than a block lies in one. */
static CUdeviceptr place(CUdeviceptr at, size_t room)
{
	return at % BLOCK + room > BLOCK ? ROUND_UP(at, BLOCK) : at;
}

/* The first gap that is large enough; what has no block yet gets one, or several. */
CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
	size_t room = ROUND_UP(size, size > BLOCK ? BLOCK : STEP);
	CUdeviceptr at = FIRST, block;
	int i, error = known(0);

	if (error)
		return error;
	if (!current || !current->users)
		return current ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	if (!size || !address)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > LIMIT || count == BUFFERS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; i < count && place(at, room) + room > buffers[i].start; i++)
		at = buffers[i].start + buffers[i].room;
	at = place(at, room);
	block = at / BLOCK * BLOCK;
	if (!in_block(i - 1, at) && !in_block(i, at) &&
	    mmap((void *)block, ROUND_UP(room, BLOCK), PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, gpu,
		 LAB_GPU_ANYWHERE) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memmove(&buffers[i + 1], &buffers[i], (count++ - i) * sizeof(*buffers));
	buffers[i] = (struct buffer){ at, size, room, current };
	*address = at;
	return CUDA_SUCCESS;
}

/* A block goes back with its last buffer, and only then the driver revokes. */
static CUresult release(struct buffer *buffer)
{
	CUdeviceptr start = buffer->start, block = start / BLOCK * BLOCK;
	size_t room = ROUND_UP(buffer->room, BLOCK);
	int i = buffer - buffers;

	memmove(buffer, buffer + 1, (--count - i) * sizeof(*buffers));
	if (in_block(i - 1, start) || in_block(i, start))
		return CUDA_SUCCESS;
	return munmap((void *)block, room) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

/* The context is the buffer's: the thread needs none. */
CUresult cuMemFree(CUdeviceptr address)
{
	struct buffer *buffer = find(address);

	if (known(0))
		return known(0);
	return buffer && buffer->start == address ? release(buffer) : CUDA_ERROR_INVALID_VALUE;
}

/* Every byte goes through the driver; whatever is the GPU's must be one buffer's. */
static CUresult copy(CUdeviceptr to, struct buffer *there, CUdeviceptr from, struct buffer *here, size_t size)
{
	char part[1 << 16];
	ssize_t n;

	if (known(0))
		return known(0);
	if (!current || !current->users)
		return current ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	if ((there && size > there->start + there->size - to) || (here && size > here->start + here->size - from))
		return CUDA_ERROR_INVALID_VALUE;
	for (; size; to += n, from += n, size -= n) {
		n = pread(memory, part, size < sizeof(part) ? size : sizeof(part), from);
		if (n <= 0 || pwrite(memory, part, n, to) != n)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy(to, find(to), from, find(from), size);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
	return find(to) ? copy(to, find(to), (CUdeviceptr)from, NULL, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
	return find(from) ? copy((CUdeviceptr)to, NULL, from, find(from), size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return find(to) && find(from) ? cuMemcpy(to, from, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	if (known(0))
		return known(0);
	if (!find(address))
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Drivers have not looked at them for a long time. */
	memset(data, 0, sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS));
	return CUDA_SUCCESS;
}

/* Copies are synchronous anyway. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	if (known(0))
		return known(0);
	if (!value || !find(address))
		return CUDA_ERROR_INVALID_VALUE;
	return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- contexts ------------------------------------------------------------------ */

static void leave(CUcontext context)
{
	int i;

	if (!context->users || --context->users)
		return;
	for (i = count - 1; i >= 0; i--)
		if (buffers[i].context == context)
			release(&buffers[i]);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	current = context;
	return known(0);
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	if (known(device) || (flags & ~CU_CTX_MAP_HOST))
		return known(device) ?: CUDA_ERROR_NOT_SUPPORTED;
	*context = calloc(1, sizeof(**context));
	if (!*context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*context)->users = 1;
	return cuCtxSetCurrent(*context);
}

/* It is not freed: a thread may have it still, and what it does in it fails. */
CUresult cuCtxDestroy(CUcontext context)
{
	leave(context);
	if (current == context)
		current = NULL;
	return known(0);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	*context = &primary;
	primary.users += !known(device);
	return known(device);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	leave(&primary);
	return known(device);
}

/* ---- what perftest links with, and does not call here -------------------------- */

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemAllocHost(void **address, size_t size)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemFreeHost(void *address)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
