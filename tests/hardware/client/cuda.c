// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Loads CUDA, finds the GPU, and exports memory as dma-bufs. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "cuda.h"

struct cuda_calls cuda;
int device;
const char *wanted_gpu;
/* CUDA's context, which each thread has to choose. */
static void *primary;

static const struct {
	const char *name;
	void *call;
} cuda_names[] = {
	{ "cuInit", &cuda.init },
	{ "cuDeviceGetCount", &cuda.count },
	{ "cuDeviceGet", &cuda.get },
	{ "cuDeviceGetName", &cuda.name },
	{ "cuDeviceGetPCIBusId", &cuda.bus_id },
	{ "cuDevicePrimaryCtxRetain", &cuda.retain },
	{ "cuCtxSetCurrent", &cuda.current },
	{ "cuMemAlloc_v2", &cuda.alloc },
	{ "cuMemFree_v2", &cuda.free },
	{ "cuMemcpyHtoD_v2", &cuda.to_gpu },
	{ "cuMemcpyDtoH_v2", &cuda.from_gpu },
	{ "cuPointerSetAttribute", &cuda.set },
	{ "cuDeviceGetDefaultMemPool", &cuda.default_pool },
	{ "cuMemAllocFromPoolAsync", &cuda.from_pool },
	{ "cuStreamSynchronize", &cuda.synchronize },
	{ "cuMemAllocManaged", &cuda.managed },
	{ "cuMemCreate", &cuda.create },
	{ "cuMemRelease", &cuda.release },
	{ "cuMemAddressReserve", &cuda.reserve },
	{ "cuMemAddressFree", &cuda.unreserve },
	{ "cuMemMap", &cuda.map },
	{ "cuMemUnmap", &cuda.unmap },
	{ "cuMemSetAccess", &cuda.access },
	{ "cuMemGetAllocationGranularity", &cuda.granularity },
	{ "cuMemGetHandleForAddressRange", &cuda.handle },
	{ "cuMemGetInfo_v2", &cuda.room },
	{ "cuGetErrorName", &cuda.error_name },
};

/* Answers with the name of CUDA's error, and returns whether there was one. */
bool failed(int error)
{
	const char *name = NULL;

	if (!error)
		return false;
	if (cuda.error_name)
		cuda.error_name(error, &name);
	answer("%s", name ? name : "CUDA_ERROR");
	return true;
}

/*
 * Starts CUDA, and finds the wanted GPU, or takes the first. Answers the reason, and returns false,
 * if CUDA has none. If all GPUs are hidden, CUDA does not even start.
 */
static bool find_gpu(void)
{
	int count = 0, i, error;
	char id[64];

	error = cuda.init(0);
	if (!error)
		error = cuda.count(&count);
	if (error == NO_DEVICE)
		error = 0;
	for (i = 0; !error && i < count; i++) {
		error = cuda.get(&device, i);
		if (!error && wanted_gpu)
			error = cuda.bus_id(id, sizeof(id), device);
		if (!error && (!wanted_gpu || !strcasecmp(id, wanted_gpu)))
			return true;
	}
	if (!failed(error))
		answer("not CUDA does not list %s: CUDA_VISIBLE_DEVICES hides it, or nvidia-smi says more",
		       wanted_gpu ? wanted_gpu : "a GPU");
	return false;
}

bool open_cuda(void)
{
	static bool is_open;
	void *library;
	size_t i;

	if (is_open)
		return true;
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (!library) {
		answer("not libcuda.so.1 cannot be loaded: %s", dlerror());
		return false;
	}
	for (i = 0; i < sizeof(cuda_names) / sizeof(cuda_names[0]); i++)
		*(void **)cuda_names[i].call = dlsym(library, cuda_names[i].name);
	if (!cuda.init || !cuda.count || !cuda.get || !cuda.bus_id || !cuda.retain ||
	    !cuda.current || !cuda.alloc || !cuda.free || !cuda.to_gpu || !cuda.from_gpu) {
		answer("not libcuda.so.1 lacks calls");
		return false;
	}
	if (!find_gpu() || failed(cuda.retain(&primary, device)) || failed(cuda.current(primary)))
		return false;
	is_open = true;
	return true;
}

/* Makes CUDA's context the calling thread's own. A client without GPU memory has none. */
void use_gpu(void)
{
	if (primary)
		cuda.current(primary);
}

/* Returns the file descriptor of a dma-buf, or -1 and the reason. */
int export_dma_buf(const struct buffer *buffer, size_t length, const char **reason)
{
	int fd = -1, error;

	*reason = NULL;
	if (!cuda.handle) {
		*reason = "libcuda.so.1 exports no dma-buf";
		return -1;
	}
	error = cuda.handle(&fd, buffer->address, length, DMA_BUF, 0);
	if (!error)
		return fd;
	*reason = "cuMemGetHandleForAddressRange";
	if (cuda.error_name)
		cuda.error_name(error, reason);
	return -1;
}
