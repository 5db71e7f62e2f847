// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A double of libibverbs with one device, for machines with GPUs and without
 * RDMA. All that a program asks for succeeds, but nothing is ever sent. Each
 * registration of GPU memory is reported on a line of the file $EVENTS.
 * With DMABUF=0 the device takes no dma-buf.
 *
 * With -DBY_COMMAND, the functions that register memory are those of
 * tests/doubles/preload/ibverbs.c, which give commands to the kernel.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define MEMORY_TYPE 2 /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
#define DEVICE_MEMORY 2 /* CU_MEMORYTYPE_DEVICE */

static struct ibv_device device = {
	.node_type = IBV_NODE_CA,
	.transport_type = IBV_TRANSPORT_IB,
	.name = "double0",
	.dev_name = "uverbs0",
	.dev_path = "/sys/class/infiniband_verbs/uverbs0",
	.ibdev_path = "/sys/class/infiniband/double0",
};
static unsigned int numbers = 1;

#ifndef BY_COMMAND
static void report(const char *verb, const void *addr, size_t length)
{
	const char *path = getenv("EVENTS");
	char line[200];
	int file, size;

	if (!path)
		return;
	size = snprintf(line, sizeof(line), "%s %p %zu\n", verb, addr, length);
	file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (write(file, line, size) != size)
		abort();
	close(file);
}

static int of_gpu(const void *addr)
{
	int (*ask)(unsigned int *, int, unsigned long);
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned int type = 0;

	*(void **)&ask = cuda ? dlsym(cuda, "cuPointerGetAttribute") : NULL;
	return ask && !ask(&type, MEMORY_TYPE, (unsigned long)addr) &&
	       type == DEVICE_MEMORY;
}

static struct ibv_mr *registered(struct ibv_pd *pd, void *addr, size_t length)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = mr->rkey = numbers++;
	return mr;
}

static struct ibv_mr *by_pointer(struct ibv_pd *pd, void *addr, size_t length)
{
	if (!pd) {
		errno = EINVAL;
		return NULL;
	}
	if (of_gpu(addr))
		report("pointer", addr, length);
	return registered(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	return by_pointer(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	return by_pointer(pd, addr, length);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	const char *wanted = getenv("DMABUF");

	if (wanted && *wanted == '0')
		errno = EOPNOTSUPP;
	else if (fd < 0)
		errno = EBADF;
	else {
		report("dma-buf", (void *)iova, length);
		return registered(pd, (void *)iova, length);
	}
	return NULL;
}

#endif

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

static int none(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	return 0;
}

static int sent(struct ibv_qp *qp, struct ibv_send_wr *wr,
		struct ibv_send_wr **bad)
{
	return 0;
}

static int received(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad)
{
	return 0;
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **found = calloc(2, sizeof(*found));

	found[0] = &device;
	if (count)
		*count = 1;
	return found;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *one)
{
	return one->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *one)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	context->device = one;
	context->ops.poll_cq = none;
	context->ops.post_send = sent;
	context->ops.post_recv = received;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	return 0;
}

/* No event ever comes. */
int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	for (;;)
		pause();
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	return "event";
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *found)
{
	memset(found, 0, sizeof(*found));
	found->phys_port_cnt = 1;
	found->max_qp = found->max_mr = found->max_cq = 1 << 16;
	found->sys_image_guid = 1;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr found = {
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = 1,
		.lid = 1,
		.active_width = 2,
		.active_speed = 32,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
	};

	memcpy(compat, &found, sizeof(found));
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
		  union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xfe;
	gid->raw[1] = 0x80;
	gid->raw[15] = 1;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int size, void *data,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	cq->context = context;
	cq->cqe = size;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *wanted)
{
	struct ibv_qp *qp = calloc(1, sizeof(*qp));

	qp->context = pd->context;
	qp->pd = pd;
	qp->qp_num = numbers++;
	qp->qp_type = wanted->qp_type;
	return qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	memset(attr, 0, sizeof(*attr));
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	free(qp);
	return 0;
}

int ibv_fork_init(void)
{
	return 0;
}
