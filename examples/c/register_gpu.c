// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers GPU memory for RDMA, as a starting point for your own program.
 *
 *     cc -I/usr/local/cuda/include -o register_gpu register_gpu.c -lcuda -libverbs
 *     ./register_gpu [RDMA-DEVICE]
 *
 * Between ibv_reg_mr and ibv_dereg_mr the network card reads and writes the memory at gpu. Work
 * requests use mr->lkey and mr->rkey as usual.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <infiniband/verbs.h>

#define SIZE	(4 << 20)

static void cuda(CUresult result, const char *what)
{
	const char *name = "unknown error";

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "%s: %s\n", what, name);
	exit(1);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	for (i = 0; devices && devices[i]; i++)
		if (!context && (!name || !strcmp(name, ibv_get_device_name(devices[i]))))
			context = ibv_open_device(devices[i]);
	ibv_free_device_list(devices);
	if (!context) {
		fprintf(stderr, "no RDMA device %s: ibv_devices lists the devices of this machine\n",
			name ? name : "at all");
		exit(1);
	}
	return context;
}

int main(int argc, char **argv)
{
	struct ibv_context *device = open_device(argc > 1 ? argv[1] : NULL);
	struct ibv_pd *pd = ibv_alloc_pd(device);
	struct ibv_mr *mr;
	CUcontext context;
	CUdeviceptr gpu;

	cuda(cuInit(0), "cuInit");
	cuda(cuCtxCreate(&context, 0, 0), "cuCtxCreate");
	cuda(cuMemAlloc(&gpu, SIZE), "cuMemAlloc");

	mr = ibv_reg_mr(pd, (void *)(uintptr_t)gpu, SIZE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!mr) {
		fprintf(stderr, "ibv_reg_mr: %s%s\n", strerror(errno),
			errno == EFAULT ? ": is nv_peer_mem loaded?" : "");
		return 1;
	}
	printf("%d bytes of GPU memory at 0x%llx: lkey 0x%x, rkey 0x%x\n", SIZE, gpu, mr->lkey,
	       mr->rkey);

	/* The registration must end before the memory is freed. */
	ibv_dereg_mr(mr);
	cuda(cuMemFree(gpu), "cuMemFree");
	cuda(cuCtxDestroy(context), "cuCtxDestroy");
	ibv_dealloc_pd(pd);
	ibv_close_device(device);
	return 0;
}
