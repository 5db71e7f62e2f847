// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Preloaded into a program that leaves the contents of its CUDA buffers to chance,
 * as perftest does: a buffer begins with the bytes of the file $GPU_FILL, and is
 * written to the file $GPU_DUMP before it is freed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

static void die(const char *what)
{
	perror(what);
	abort();
}

/* Of the one that there is at a time. */
static size_t size_of_buffer;

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
	CUresult (*real)(CUdeviceptr *address, size_t size) = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	FILE *file = fopen(getenv("GPU_FILL"), "r");
	void *bytes = malloc(size);
	CUresult result = real(address, size);

	if (result != CUDA_SUCCESS)
		return result;
	if (!file || !bytes || size_of_buffer || fread(bytes, 1, size, file) != size ||
	    cuMemcpyHtoD(*address, bytes, size) != CUDA_SUCCESS)
		die("GPU_FILL");
	size_of_buffer = size;
	free(bytes);
	fclose(file);
	return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
	CUresult (*real)(CUdeviceptr address) = dlsym(RTLD_NEXT, "cuMemFree_v2");
	FILE *file = fopen(getenv("GPU_DUMP"), "w");
	void *bytes = malloc(size_of_buffer);

	if (!file || !bytes || cuMemcpyDtoH(bytes, address, size_of_buffer) != CUDA_SUCCESS ||
	    fwrite(bytes, 1, size_of_buffer, file) != size_of_buffer || fclose(file))
		die("GPU_DUMP");
	free(bytes);
	return real(address);
}
