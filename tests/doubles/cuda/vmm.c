// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that a program creates and maps by itself (VMM). As in CUDA, the driver pins it for others
 * only if it was created for that (gpuDirectRDMACapable). The library knows one mapping of a handle,
 * and no handle that another process or node could open.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "buffers.h"
#include "gpu.h"

static struct created {
	size_t size;	/* 0: this place is free */
	bool is_capable;
	int gpu;
} handles[64];

/* Returns what a handle stands for, or NULL. The handle 0 does not exist. */
static struct created *created(unsigned long long handle)
{
	if (!handle || handle > sizeof(handles) / sizeof(*handles) || !handles[handle - 1].size)
		return NULL;
	return &handles[handle - 1];
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *is, int option)
{
	CUresult error = ready(__func__);

	if (error)
		return error;
	if (is->requestedHandleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	*granularity = BLOCK;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(unsigned long long *handle, size_t size, const CUmemAllocationProp *is,
		     unsigned long long flags)
{
	CUresult error = ready(__func__);
	unsigned long long i = 0;

	if (error)
		return error;
	if (is->requestedHandleTypes || is->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!size || size % BLOCK || flags)
		return CUDA_ERROR_INVALID_VALUE;
	while (created(i + 1))
		i++;
	if (i == sizeof(handles) / sizeof(*handles))
		return CUDA_ERROR_OUT_OF_MEMORY;
	handles[i] = (struct created){ size, is->allocFlags.gpuDirectRDMACapable, is->location.id };
	*handle = i + 1;
	return CUDA_SUCCESS;
}

/* Gives a handle up. Memory that is mapped stays until it is unmapped. */
CUresult cuMemRelease(unsigned long long handle)
{
	CUresult error = ready(__func__);

	if (error)
		return error;
	if (!created(handle))
		return CUDA_ERROR_INVALID_VALUE;
	created(handle)->size = 0;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted,
			     unsigned long long flags)
{
	CUresult error = ready(__func__);
	void *mapped;

	if (error)
		return error;
	if (!size || size % BLOCK || alignment > BLOCK || flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* A whole block more leaves room for the alignment; it is given back. */
	mapped = mmap(NULL, size + BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address = BLOCKS((CUdeviceptr)mapped);
	munmap(mapped, *address - (CUdeviceptr)mapped);
	munmap((void *)(*address + size), (CUdeviceptr)mapped + BLOCK - *address);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
	CUresult error = ready(__func__);

	return error ?: munmap((void *)address, size) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, unsigned long long handle,
		  unsigned long long flags)
{
	CUresult error = ready(__func__);
	const struct created *is = created(handle);
	struct buffer wanted = { .start = address, .size = size, .type = CU_MEMORYTYPE_DEVICE };

	if (error)
		return error;
	if (!is || offset || size != is->size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	wanted.gpu = is->gpu;
	wanted.properties = is->is_capable ? 0 : GPU_NO_P2P;
	munmap((void *)address, size);
	return allocate(&address, wanted);
}

/* Leaves the addresses reserved. */
CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	CUresult error = ready(__func__);
	struct buffer *buffer = find(address);

	if (error)
		return error;
	if (!buffer || buffer->start != address || buffer->size != size)
		return CUDA_ERROR_INVALID_VALUE;
	was_freed();
	error = release(buffer);
	mmap((void *)address, size, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	return error;
}

/* Mapped memory can be accessed from the beginning. */
CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *who, size_t count)
{
	CUresult error = ready(__func__);

	if (error)
		return error;
	return find(address) && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
