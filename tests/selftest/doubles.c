// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libibverbs.so.1 and libcuda.so.1 in one, for tests of the service's selftest: "GPU
 * memory" is host memory, and an RDMA write is a copy at once. Compiled with the real
 * header, so a structure that selftest lays out wrong is noticed. Words in the
 * environment:
 *
 *   GPUS=N          that many (1); with 0 cuInit finds none
 *   HCAS="A B"      RDMA devices (mlx5_0)
 *   DOUBLE=WORD     what goes wrong; see the uses of told()
 *
 * What a program asks for against the rules ends it with a line. What is left when it
 * ends is counted in the file LEFT.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define MANY 16
#define LID 7
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NO_DEVICE 100

struct gpu_memory {
	char *start;
	size_t size;
	int freed;
};

struct qp {
	struct ibv_qp qp;
	struct ibv_qp_attr attr;
};

static struct gpu_memory memory[MANY];
static struct ibv_mr regions[MANY];
static struct qp *qps[MANY];
static struct ibv_device *devices;
static struct ibv_wc pending;
static int completions, objects;

static int told(const char *what)
{
	const char *word = getenv("DOUBLE");

	return word && !strcmp(word, what);
}

static void rule(int kept, const char *text)
{
	if (kept)
		return;
	fprintf(stderr, "double: against the rules: %s\n", text);
	exit(99);
}

__attribute__((destructor)) static void left(void)
{
	FILE *file = fopen(getenv("LEFT"), "w");

	fprintf(file, "%d\n", objects);
	fclose(file);
}

static int number(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

/* ---- CUDA -------------------------------------------------------------------- */

int cuInit(unsigned int flags)
{
	if (told("cuInit"))
		return 999;
	return number("GPUS", 1) ? 0 : CUDA_ERROR_NO_DEVICE;
}

int cuGetErrorName(int error, const char **name)
{
	*name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = number("GPUS", 1);
	return 0;
}

int cuDeviceGet(int *device, int index)
{
	*device = index;
	return 0;
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	snprintf(id, size, "0000:%02X:00.0", 0x1a + device);
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	objects++;
	*context = &memory[device];
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	objects--;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	return 0;
}

static struct gpu_memory *gpu_memory_at(uint64_t address)
{
	int i;

	for (i = 0; i < MANY; i++) {
		if (memory[i].start && address >= (uint64_t)memory[i].start &&
		    address < (uint64_t)memory[i].start + memory[i].size)
			return &memory[i];
	}
	return NULL;
}

int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	int i;

	if (told("full"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; memory[i].start; i++)
		rule(i + 1 < MANY, "too many buffers");
	memory[i] = (struct gpu_memory){ calloc(1, size), size, 0 };
	*address = (uint64_t)memory[i].start;
	objects++;
	return 0;
}

int cuMemFree_v2(uint64_t address)
{
	struct gpu_memory *found = gpu_memory_at(address);

	rule(found && !found->freed && address == (uint64_t)found->start, "freed what is none");
	/* It stays: what reaches it later is to be noticed. */
	found->freed = 1;
	objects--;
	return 0;
}

int cuPointerSetAttribute(const void *value, int attribute, uint64_t address)
{
	rule(attribute == 6 && *(unsigned int *)value == 1 && gpu_memory_at(address), "sync_memops");
	return 0;
}

static int copy(void *to, const void *from, uint64_t device, size_t size)
{
	struct gpu_memory *found = gpu_memory_at(device);

	rule(found && !found->freed && device + size <= (uint64_t)found->start + found->size, "copied what is none");
	memcpy(to, from, size);
	return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	return copy((void *)to, from, to, size);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
	return copy(to, (void *)from, from, size);
}

/* ---- verbs ------------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *count)
{
	static char names[256];
	struct ibv_device **list = calloc(MANY, sizeof(*list));
	const char *wanted = getenv("HCAS");
	char *name, *rest;

	if (!devices)
		devices = calloc(MANY, sizeof(*devices));
	snprintf(names, sizeof(names), "%s", wanted ? wanted : "mlx5_0");
	*count = 0;
	for (name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		snprintf(devices[*count].name, sizeof(devices[*count].name), "%s", name);
		list[*count] = &devices[*count];
		++*count;
	}
	objects++;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	objects--;
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	if (!completions)
		return 0;
	completions--;
	*wc = pending;
	return 1;
}

static struct ibv_mr *region_of(uint32_t key, uint64_t address, uint32_t length)
{
	rule(key >= 1 && key <= MANY && regions[key - 1].addr, "a key that is none");
	rule(address >= (uint64_t)regions[key - 1].addr &&
	     address + length <= (uint64_t)regions[key - 1].addr + regions[key - 1].length, "outside of a region");
	return &regions[key - 1];
}

/* Whether the device may go there: not where the memory was freed, unless it is pinned. */
static int reachable(struct ibv_mr *region)
{
	struct gpu_memory *found = gpu_memory_at((uint64_t)region->addr);

	return !found || !found->freed || told("pinned");
}

static uint32_t longest(void)
{
	return told("short") ? 1 << 20 : 1 << 30;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_sge *sge = wr->sg_list;
	struct ibv_mr *local = region_of(sge->lkey, sge->addr, sge->length);
	struct ibv_mr *remote = region_of(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, sge->length);
	char *to = (char *)wr->wr.rdma.remote_addr, *from = (char *)sge->addr;
	int into_gpu;

	rule(qp->state == IBV_QPS_RTS, "a queue pair that is not ready");
	rule(wr->num_sge == 1 && wr->send_flags == IBV_SEND_SIGNALED && !wr->next, "one signaled request");
	rule(!completions, "one request at a time");
	rule(sge->length <= longest(), "no message longer than the port takes");
	if (told("lost") || told("no_descriptor"))
		return told("lost") ? 0 : ENOMEM;
	pending = (struct ibv_wc){ .wr_id = wr->wr_id, .status = IBV_WC_SUCCESS };
	completions = 1;
	if (!reachable(remote) || !reachable(local)) {
		rule(wr->opcode == IBV_WR_RDMA_READ, "nothing is written after the memory was freed");
		pending.status = told("silent") ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_ACCESS_ERR;
		return 0;
	}
	if (wr->opcode == IBV_WR_RDMA_READ) {
		to = (char *)sge->addr;
		from = (char *)wr->wr.rdma.remote_addr;
	} else {
		rule(wr->opcode == IBV_WR_RDMA_WRITE, "read or write");
	}
	into_gpu = gpu_memory_at((uint64_t)to) != NULL;
	if (told(into_gpu ? "nothing_to_gpu" : "nothing_from_gpu"))
		return 0;
	memcpy(to, from, sge->length);
	if (told(into_gpu ? "wrong_to_gpu" : "wrong_from_gpu"))
		to[12345] ^= 1;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	if (told("rights")) {
		errno = EACCES;
		return NULL;
	}
	context->device = device;
	context->ops.poll_cq = poll_cq;
	context->ops.post_send = post_send;
	objects++;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	objects--;
	free(context);
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

	rule(port == 1, "the active port");
	attr->state = IBV_PORT_ACTIVE;
	attr->active_mtu = IBV_MTU_2048;
	attr->max_msg_sz = longest();
	attr->lid = LID;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	objects++;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	objects--;
	free(pd);
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct gpu_memory *found = gpu_memory_at((uint64_t)address);
	int i;

	rule(access == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ), "rights");
	if (found ? told("no_module") : told("memlock")) {
		errno = found ? EFAULT : ENOMEM;
		return NULL;
	}
	for (i = 0; regions[i].addr; i++)
		rule(i + 1 < MANY, "too many regions");
	regions[i] = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = address, .length = length,
				      .lkey = i + 1, .rkey = i + 1 };
	objects++;
	return &regions[i];
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	rule(!qps[0], "queue pairs go before the memory that they reach");
	mr->addr = NULL;
	objects--;
	return told("dereg") ? EBUSY : 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	rule(cqe >= 2, "room for what both queue pairs may say");
	cq->context = context;
	completions = 0;
	objects++;
	return cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	objects--;
	free(cq);
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	int i = qps[0] ? 1 : 0;

	rule(init->qp_type == IBV_QPT_RC && init->send_cq && init->recv_cq && !init->srq, "a queue pair");
	rule(init->cap.max_send_wr >= 1 && init->cap.max_send_sge >= 1 && !init->cap.max_inline_data, "its room");
	rule(!qps[1], "too many queue pairs");
	qps[i] = calloc(1, sizeof(*qps[i]));
	qps[i]->qp.context = pd->context;
	qps[i]->qp.pd = pd;
	qps[i]->qp.qp_num = 0x1000011 + i;
	objects++;
	return &qps[i]->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int i = qps[1] ? 1 : 0;

	rule(&qps[i]->qp == qp, "the last one goes first");
	free(qps[i]);
	qps[i] = NULL;
	objects--;
	return 0;
}

/* InfiniBand goes by LID, everything else by GID. */
static void check_route(struct ibv_qp *qp, struct ibv_ah_attr *route)
{
	const uint8_t ipv4[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 };

	rule(route->port_num == 1, "the port of a route");
	if (!strncmp(qp->context->device->name, "ib", 2)) {
		rule(!route->is_global && route->dlid == LID, "a route by LID");
		return;
	}
	rule(route->is_global && route->grh.sgid_index == 3 && route->grh.hop_limit > 1, "a route by GID");
	rule(!memcmp(route->grh.dgid.raw, ipv4, 16), "the address of IPv4 comes first");
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct qp *other = &qps[0]->qp == qp ? qps[1] : qps[0];

	rule(mask & IBV_QP_STATE, "the state");
	rule(attr->qp_state == qp->state + 1, "from state to state");
	qp->state = attr->qp_state;
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		rule(mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) &&
		     attr->port_num == 1 && attr->qp_access_flags == 7, "to INIT");
		break;
	case IBV_QPS_RTR:
		rule(mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "what RTR wants");
		rule(other && attr->dest_qp_num == other->qp.qp_num && attr->rq_psn < 1 << 24 &&
		     attr->path_mtu == IBV_MTU_2048 && attr->max_dest_rd_atomic == 1, "to RTR");
		check_route(qp, &attr->ah_attr);
		break;
	default:
		rule(mask == (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		     IBV_QP_MAX_QP_RD_ATOMIC) && attr->timeout && attr->retry_cnt && attr->rnr_retry &&
		     attr->max_rd_atomic == 1, "to RTS");
		rule(attr->sq_psn == (qp->qp_num & 0xffffff), "its own first packet");
	}
	return 0;
}
