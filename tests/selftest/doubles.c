// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libibverbs.so.1 and libcuda.so.1 in one, for tests of the service's selftest: "GPU
 * memory" is host memory, and an RDMA write is a copy at once. Compiled with the real
 * header, so a structure that selftest lays out wrong is noticed. What a program asks for
 * against the rules ends it with a line, and so does what it has not given back. In the
 * environment:
 *
 *   GPUS=N          that many (1)
 *   HCAS="A B"      RDMA devices (mlx5_0); roce... are reached by GID, others by LID
 *   DOUBLE=WORD     what goes wrong; see the uses of told()
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define MANY 4
#define LID 7
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_NO_DEVICE 100

/* GPU memory: what is freed is not used again, so what reaches it later is noticed. */
static char memory[1 << 27], *start = memory, *end = memory;
static struct ibv_mr regions[2];
static struct ibv_qp *qps[2];
static struct ibv_device devices[MANY];
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
	_exit(99);
}

__attribute__((destructor)) static void left(void)
{
	rule(!objects, "something is not given back");
}

static void *made(size_t size)
{
	objects++;
	return calloc(1, size);
}

static int gone(void *object)
{
	objects--;
	free(object);
	return 0;
}

/* ---- CUDA -------------------------------------------------------------------- */

int cuDeviceGetCount(int *count)
{
	*count = getenv("GPUS") ? atoi(getenv("GPUS")) : 1;
	return 0;
}

int cuInit(unsigned int flags)
{
	int count;

	cuDeviceGetCount(&count);
	return told("cuInit") ? 999 : count ? 0 : CUDA_ERROR_NO_DEVICE;
}

int cuGetErrorName(int error, const char **name)
{
	*name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
	return 0;
}

int cuDeviceGet(int *device, int index)
{
	*device = index;
	return 0;
}

int cuDeviceGetPCIBusId(char *id, int size, int device)
{
	snprintf(id, size, "0000:%02X:00.0", device ? 0x1a : 3);
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = made(1);
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return gone(NULL);
}

int cuCtxSetCurrent(void *context)
{
	return 0;
}

static int in_gpu(const void *address)
{
	return (char *)address >= memory && (char *)address < memory + sizeof(memory);
}

static int is_live(const void *address, size_t size)
{
	return (char *)address >= start && (char *)address + size <= end;
}

int cuMemAlloc_v2(char **address, size_t size)
{
	if (told("full"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	rule(start == end && end + size < memory + sizeof(memory), "one buffer at a time");
	end += size;
	*address = start;
	objects++;
	return 0;
}

int cuMemFree_v2(char *address)
{
	rule(start < end && address == start, "freed what is none");
	start = end;
	return gone(NULL);
}

int cuPointerSetAttribute(const unsigned int *value, int attribute, char *address)
{
	rule(attribute == 6 && *value == 1 && is_live(address, 1), "sync_memops");
	return 0;
}

int cuMemcpyHtoD_v2(char *to, const void *from, size_t size)
{
	rule(is_live(to, size), "copied to what is none");
	memcpy(to, from, size);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, const char *from, size_t size)
{
	rule(is_live(from, size), "copied from what is none");
	memcpy(to, from, size);
	return 0;
}

/* ---- verbs ------------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = made(MANY * sizeof(*list));
	char *names = strdup(getenv("HCAS") ? getenv("HCAS") : "mlx5_0");
	char *name, *rest;

	*count = 0;
	for (name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		snprintf(devices[*count].name, sizeof(devices[*count].name), "%s", name);
		list[*count] = &devices[*count];
		++*count;
	}
	free(names);
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	gone(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
	if (!completions)
		return 0;
	*wc = pending;
	return completions--;
}

/* What the device reaches with a key, or NULL if the memory was freed and is not pinned. */
static char *reach(uint32_t key, uint64_t address, uint32_t length)
{
	struct ibv_mr *region = &regions[key & 1];
	char *first = (char *)address;

	rule(region->addr && region->lkey == key, "a key that is none");
	rule(first >= (char *)region->addr && first + length <= (char *)region->addr + region->length, "outside of a region");
	return !in_gpu(first) || is_live(first, length) || told("pinned") ? first : NULL;
}

static uint32_t longest(void)
{
	return told("short") ? 1 << 20 : 1 << 30;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct ibv_sge *sge = wr->sg_list;
	char *local = reach(sge->lkey, sge->addr, sge->length);
	char *remote = reach(wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, sge->length);
	char *to = wr->opcode == IBV_WR_RDMA_READ ? local : remote;
	int into_gpu = in_gpu(to);

	rule(qp->state == IBV_QPS_RTS, "a queue pair that is not ready");
	rule(wr->num_sge == 1 && wr->send_flags == IBV_SEND_SIGNALED && !wr->next, "one signaled request");
	rule(wr->opcode == IBV_WR_RDMA_READ || (wr->opcode == IBV_WR_RDMA_WRITE && local && remote),
	     "read or write, and nothing is written after the memory was freed");
	rule(!completions && sge->length <= longest(), "a message at a time, as long as the port takes");
	if (told("lost") || told("no_descriptor"))
		return told("lost") ? 0 : ENOMEM;
	completions = 1;
	pending = (struct ibv_wc){ .wr_id = wr->wr_id, .status = IBV_WC_SUCCESS };
	if (!local || !remote)
		pending.status = told("silent") ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_ACCESS_ERR;
	else if (!told(into_gpu ? "nothing_to_gpu" : "nothing_from_gpu"))
		memcpy(to, to == local ? remote : local, sge->length);
	if (told(into_gpu ? "wrong_to_gpu" : "wrong_from_gpu"))
		to[12345] ^= 1;
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;

	errno = EACCES;
	if (told("rights"))
		return NULL;
	context = made(sizeof(*context));
	context->device = device;
	context->ops.poll_cq = poll_cq;
	context->ops.post_send = post_send;
	return context;
}

int ibv_close_device(struct ibv_context *context)
{
	return gone(context);
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)compat;

	rule(port == 1, "the active port");
	attr->active_mtu = IBV_MTU_2048;
	attr->max_msg_sz = longest();
	attr->lid = LID;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = made(sizeof(*pd));

	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return gone(pd);
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	int i = in_gpu(address);

	rule(access == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ), "rights");
	rule(!regions[i].addr, "a region of each memory");
	errno = i ? EFAULT : ENOMEM;
	if (told(i ? "no_module" : "memlock"))
		return NULL;
	objects++;
	regions[i] = (struct ibv_mr){ .addr = address, .length = length, .lkey = 0x70 + i, .rkey = 0x70 + i };
	return &regions[i];
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	rule(!qps[0], "queue pairs go before the memory that they reach");
	mr->addr = NULL;
	gone(NULL);
	return told("dereg") ? EBUSY : 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	rule(cqe >= 2, "room for what both queue pairs may say");
	completions = 0;
	return made(sizeof(struct ibv_cq));
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return gone(cq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = made(sizeof(*qp));

	rule(init->qp_type == IBV_QPT_RC && init->send_cq && init->recv_cq && !init->srq, "a queue pair");
	rule(init->cap.max_send_wr >= 1 && init->cap.max_send_sge >= 1 && !init->cap.max_inline_data, "its room");
	rule(!qps[1], "too many queue pairs");
	qp->context = pd->context;
	qp->qp_num = 0x1000011 + !!qps[0];
	qps[!!qps[0]] = qp;
	return qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	qps[qps[0] != qp] = NULL;
	return gone(qp);
}

static void check_route(struct ibv_qp *qp, struct ibv_ah_attr *route)
{
	const uint8_t ipv4[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 };

	rule(route->port_num == 1, "the port of a route");
	if (strncmp(qp->context->device->name, "roce", 4)) {
		rule(!route->is_global && route->dlid == LID, "a route by LID");
		return;
	}
	rule(route->is_global && route->grh.sgid_index == 3 && route->grh.hop_limit > 1, "a route by GID");
	rule(!memcmp(route->grh.dgid.raw, ipv4, 16), "the address of IPv4 comes first");
}

/* Which attributes a state wants the kernel says, in the scenario selftest. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *other = qps[qps[0] == qp];

	rule(mask & IBV_QP_STATE && attr->qp_state == qp->state + 1, "from state to state");
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_INIT) {
		rule(attr->port_num == 1 && attr->qp_access_flags == 7, "to INIT");
	} else if (qp->state == IBV_QPS_RTR) {
		rule(other && attr->dest_qp_num == other->qp_num && attr->rq_psn == (other->qp_num & 0xffffff) &&
		     attr->path_mtu == IBV_MTU_2048 && attr->max_dest_rd_atomic == 1, "to RTR");
		check_route(qp, &attr->ah_attr);
	} else {
		rule(attr->timeout && attr->retry_cnt && attr->rnr_retry && attr->max_rd_atomic == 1 &&
		     attr->sq_psn == (qp->qp_num & 0xffffff), "to RTS");
	}
	return 0;
}
