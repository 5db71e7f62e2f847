// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * UCX on device memory: puts and gets between two registered CUDA buffers, over
 * an endpoint from one worker to another of the same process.
 *
 * Exit status: 0 when all bytes were as they must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "cuda.h"

#define SIZE		(3 * 1024 * 1024 + 17)
#define SIZES		{ 1, 80, 4096, 65537, SIZE }

/*
 * Fewer bytes UCX gets by way of the CPU, and has no transport here that
 * would bring them to device memory from there.
 */
#define GET_MIN		4096

static ucp_context_h context;
static ucp_worker_h here, there;

static void expect(int holds, const char *what, const char *why)
{
	if (holds)
		return;
	fprintf(stderr, "ucx_cuda: %s: %s\n", what, why);
	exit(1);
}

#define CUDA(call)		expect((call) == CUDA_SUCCESS, #call, "failed")
#define UCX(call)		ucx((call), #call)

static void ucx(ucs_status_t status, const char *what)
{
	expect(status == UCS_OK, what, ucs_status_string(status));
}

static void finish(ucs_status_ptr_t request, const char *what)
{
	ucs_status_t status = UCS_PTR_STATUS(request);

	while (UCS_PTR_IS_PTR(request) && (status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
		ucp_worker_progress(here);
		ucp_worker_progress(there);
	}
	ucx(status, what);
}

static CUdeviceptr buffer(ucp_mem_h *handle)
{
	CUdeviceptr address;
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
			      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
		.length = SIZE,
		.memory_type = UCS_MEMORY_TYPE_CUDA,
	};

	CUDA(cuMemAlloc(&address, SIZE));
	params.address = (void *)address;
	UCX(ucp_mem_map(context, &params, handle));
	return address;
}

static void fill(CUdeviceptr address, unsigned char *bytes, unsigned int seed)
{
	size_t i;

	srandom(seed);
	for (i = 0; i < SIZE; i++)
		bytes[i] = random();
	CUDA(cuMemcpyHtoD(address, bytes, SIZE));
}

static void compare(CUdeviceptr address, const unsigned char *expected, const char *what, size_t size)
{
	static unsigned char found[SIZE];

	CUDA(cuMemcpyDtoH(found, address, SIZE));
	expect(memcmp(found, expected, SIZE) == 0, what, "wrong bytes in device memory");
	printf("%s of %zu bytes: as it must be\n", what, size);
}

int main(void)
{
	static unsigned char ours[SIZE], theirs[SIZE];
	const size_t sizes[] = SIZES;
	/*
	 * A UCX without CUDA takes every buffer for the CPU's in its way for
	 * short messages, whatever type it is told. A data type, though it is
	 * the usual one, keeps it off that way.
	 */
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_MEMH |
				UCP_OP_ATTR_FIELD_DATATYPE,
		.memory_type = UCS_MEMORY_TYPE_CUDA,
		.datatype = ucp_dt_make_contig(1),
	};
	const ucp_request_param_t none = { 0 };
	const ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA };
	const ucp_worker_params_t worker = { 0 };
	ucp_ep_params_t to = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	CUdeviceptr local, remote;
	ucp_mem_h remote_mem;
	CUcontext cuda_context;
	ucp_address_t *address;
	ucp_ep_h endpoint;
	ucp_rkey_h rkey;
	size_t length, i;
	void *packed;

	CUDA(cuInit(0));
	CUDA(cuCtxCreate(&cuda_context, 0, 0));
	UCX(ucp_init(&params, NULL, &context));
	UCX(ucp_worker_create(context, &worker, &here));
	UCX(ucp_worker_create(context, &worker, &there));
	UCX(ucp_worker_get_address(there, &address, &length));
	to.address = address;
	UCX(ucp_ep_create(here, &to, &endpoint));
	local = buffer(&param.memh);
	remote = buffer(&remote_mem);
	UCX(ucp_rkey_pack(context, remote_mem, &packed, &length));
	UCX(ucp_ep_rkey_unpack(endpoint, packed, &rkey));

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const size_t size = sizes[i], at = SIZE - size;

		fill(local, ours, 2 * i + 1);
		fill(remote, theirs, 2 * i + 2);
		finish(ucp_put_nbx(endpoint, (void *)local, size, remote + at, rkey, &param), "ucp_put_nbx");
		finish(ucp_ep_flush_nbx(endpoint, &none), "ucp_ep_flush_nbx");
		memcpy(theirs + at, ours, size);
		compare(remote, theirs, "put", size);
		if (size < GET_MIN)
			continue;
		finish(ucp_get_nbx(endpoint, (void *)(local + at), size, remote, rkey, &param), "ucp_get_nbx");
		memcpy(ours + at, theirs, size);
		compare(local, ours, "get", size);
	}

	UCX(ucp_mem_unmap(context, param.memh));
	UCX(ucp_mem_unmap(context, remote_mem));
	return 0;
}
