// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program as ib_gpudirect's README has it: buffers of the GPU, announced to the
 * kernel by an ioctl, registered with a flag of their own, and sent.
 *
 *	ib_gpudirect send ADDRESS FILE...
 *	ib_gpudirect receive ADDRESS LENGTH FILE... [free HEIR]
 *
 * One buffer for each file, all of them registered before the connection. The
 * receiver writes to the files what has come. `free`: it frees the last buffer
 * before that is received, and writes the file from the one that the GPU then has at
 * its address, which began with the bytes of the file HEIR.
 *
 * Without OLD_KERNEL it is the same program without ioctl and flag.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cuda.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT		"18516"
#define BUFFERS		4

struct buffer {
	CUdeviceptr gpu;
	size_t length;
	struct ibv_mr *mr;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void cuda(CUresult result, const char *what)
{
	const char *name = "unknown error";

	if (result == CUDA_SUCCESS)
		return;
	cuGetErrorName(result, &name);
	fprintf(stderr, "%s: %s\n", what, name);
	exit(1);
}

/* ---- what the kernel of its time wanted ------------------------------------ */

#ifdef OLD_KERNEL
/* The patched verbs.h had it. */
#define IBV_ACCESS_GPU_MEMORY	(1 << 5)

struct gpu_memory {
	CUDA_POINTER_ATTRIBUTE_P2P_TOKENS tokens;
	void *address;
	int size;
	int unused;
};

/* Of one buffer, for the next registration. The request's number does not matter. */
static void announce(const struct buffer *buffer)
{
	struct gpu_memory memory = {
		.address = (void *)(uintptr_t)buffer->gpu,
		.size = buffer->length,
	};
	int fd = open("/dev/infiniband/uverbs0", O_RDWR);

	if (fd < 0)
		die("/dev/infiniband/uverbs0");
	cuda(cuPointerGetAttribute(&memory.tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, buffer->gpu),
	     "CU_POINTER_ATTRIBUTE_P2P_TOKENS");
	if (ioctl(fd, 11, &memory))
		perror("announcing GPU memory");
	close(fd);
}
#else
#define IBV_ACCESS_GPU_MEMORY	0
#define announce(buffer)	((void)(buffer))
#endif

/* ---- memory ------------------------------------------------------------------ */

static void allocate(struct buffer *buffer, size_t length)
{
	buffer->length = length;
	cuda(cuMemAlloc(&buffer->gpu, length), "cuMemAlloc");
	cuda(cuMemsetD8(buffer->gpu, 0xa5, length), "cuMemsetD8");
	printf("buffer at 0x%llx\n", buffer->gpu);
}

static void register_it(struct buffer *buffer, struct rdma_cm_id *id)
{
	announce(buffer);
	buffer->mr = ibv_reg_mr(id->pd, (void *)(uintptr_t)buffer->gpu, buffer->length,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_GPU_MEMORY);
	if (!buffer->mr)
		die("registering GPU memory");
}

static size_t length_of(const char *name)
{
	struct stat status;

	if (stat(name, &status))
		die(name);
	return status.st_size;
}

static void from_file(const struct buffer *buffer, const char *name)
{
	FILE *file = fopen(name, "r");
	void *bytes = malloc(buffer->length);

	if (!file || !bytes || fread(bytes, 1, buffer->length, file) != buffer->length)
		die(name);
	cuda(cuMemcpyHtoD(buffer->gpu, bytes, buffer->length), "cuMemcpyHtoD");
	free(bytes);
	fclose(file);
}

static void to_file(const struct buffer *buffer, const char *name)
{
	FILE *file = fopen(name, "w");
	void *bytes = malloc(buffer->length);

	if (!file || !bytes)
		die(name);
	cuda(cuMemcpyDtoH(bytes, buffer->gpu, buffer->length), "cuMemcpyDtoH");
	if (fwrite(bytes, 1, buffer->length, file) != buffer->length || fclose(file))
		die(name);
	free(bytes);
}

/* Its memory goes, its registration does not; its address is used again. */
static void free_and_pass_on(struct buffer *buffer, const char *heir)
{
	cuda(cuMemFree(buffer->gpu), "cuMemFree");
	allocate(buffer, buffer->length);
	from_file(buffer, heir);
}

/* ---- connections --------------------------------------------------------------- */

static struct rdma_cm_id *end_point(const char *address, int flags)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo hints = {
		.ai_flags = flags,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(address, PORT, &hints, &info))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, info, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

/* The next completion, if there is none that failed. */
static int completed(int count, const struct ibv_wc *wc, const char *what)
{
	if (count != 1)
		die(what);
	printf("%s: %s\n", what, ibv_wc_status_str(wc->status));
	return wc->status == IBV_WC_SUCCESS;
}

static int send_all(const char *address, char **files, int count)
{
	struct rdma_cm_id *id = end_point(address, 0);
	struct rdma_conn_param patience = { .retry_count = 7, .rnr_retry_count = 7 };
	struct buffer buffers[BUFFERS];
	struct ibv_wc wc;
	int i, ok = 1;

	for (i = 0; i < count; i++) {
		allocate(&buffers[i], length_of(files[i]));
		from_file(&buffers[i], files[i]);
		register_it(&buffers[i], id);
	}
	if (rdma_connect(id, &patience))
		die("rdma_connect");
	for (i = 0; i < count && ok; i++) {
		if (rdma_post_send(id, NULL, (void *)(uintptr_t)buffers[i].gpu, buffers[i].length,
				   buffers[i].mr, 0))
			die("rdma_post_send");
		ok = completed(rdma_get_send_comp(id, &wc), &wc, "sent");
	}
	rdma_disconnect(id);
	for (i = 0; i < count; i++)
		ibv_dereg_mr(buffers[i].mr);
	rdma_destroy_ep(id);
	return !ok;
}

static int receive_all(const char *address, size_t length, char **files, int count,
		       const char *heir)
{
	struct rdma_cm_id *listener = end_point(address, RAI_PASSIVE), *id;
	struct rdma_conn_param patience = { .retry_count = 7, .rnr_retry_count = 7 };
	struct buffer buffers[BUFFERS];
	struct ibv_wc wc;
	int i, ok = 1;

	for (i = 0; i < count; i++)
		allocate(&buffers[i], length);
	if (rdma_listen(listener, 0))
		die("rdma_listen");
	if (rdma_get_request(listener, &id))
		die("rdma_get_request");
	for (i = 0; i < count; i++)
		register_it(&buffers[i], id);
	for (i = 0; i < count && ok; i++) {
		CUdeviceptr registered = buffers[i].gpu;

		if (heir && i == count - 1)
			free_and_pass_on(&buffers[i], heir);
		if (rdma_post_recv(id, NULL, (void *)(uintptr_t)registered, length, buffers[i].mr))
			die("rdma_post_recv");
		if (i == 0 && rdma_accept(id, &patience))
			die("rdma_accept");
		ok = completed(rdma_get_recv_comp(id, &wc), &wc, "received");
		to_file(&buffers[i], files[i]);
	}
	rdma_disconnect(id);
	for (i = 0; i < count; i++)
		ibv_dereg_mr(buffers[i].mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	return !ok;
}

int main(int argc, char **argv)
{
	int receive = argc > 4 && !strcmp(argv[1], "receive"), first = receive ? 4 : 3;
	int frees = receive && argc > 6 && !strcmp(argv[argc - 2], "free");
	int count = argc - first - 2 * frees;
	CUcontext context;

	if ((!receive && (argc < 4 || strcmp(argv[1], "send"))) || count < 1 || count > BUFFERS) {
		fprintf(stderr, "usage: ib_gpudirect send ADDRESS FILE...\n"
				"       ib_gpudirect receive ADDRESS LENGTH FILE... [free HEIR]\n");
		return 2;
	}
	cuda(cuInit(0), "cuInit");
	cuda(cuCtxCreate(&context, 0, 0), "cuCtxCreate");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (receive)
		return receive_all(argv[2], strtoul(argv[3], NULL, 0), argv + first, count,
				   frees ? argv[argc - 1] : NULL);
	return send_all(argv[2], argv + first, count);
}
