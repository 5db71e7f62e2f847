// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libibverbs.so.1 for tests of nvpm selftest, which also loads the lab's libcuda (tests/doubles/cuda). An
 * RDMA write copies at once. If a program breaks a rule, or does not free everything, the library prints
 * a message and ends the program. Variables in the environment:
 *
 *    HCAS="A B"      RDMA devices (mlx5_0); roce... are reached by GID, others by LID
 *    DOUBLE=WORD     the failure to cause; see the uses of told()
 *
 * With DOUBLE=slow or slow_first, the library must be in LD_PRELOAD, because it then also has the clock.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr

#define COUNT(array)	(sizeof(array) / sizeof(*(array)))

enum { LID = 7, ALL = 7, FIRST_KEY = 0x70, FIRST_QP = 0x1000011 };
/* CU_POINTER_ATTRIBUTE_... */
enum { SYNC_MEMOPS = 6, BUFFER_ID = 7, DEVICE_ORDINAL = 9 };

static const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

static bool told(const char *word)
{
	const char *said = getenv("DOUBLE");

	return said && !strcmp(said, word);
}

/*
 * Faults as a driver with a mistake does. A signal that is only raised would not end a program in Rust, whose handler
 * returns to the instruction that faults again.
 */
static void crash(void)
{
	*(volatile int *)8 = 0;
}

static void rule(bool kept, const char *text)
{
	if (kept)
		return;
	fprintf(stderr, "double: a rule is broken: %s\n", text);
	_exit(99);
}

static void *failed(int number)
{
	errno = number;
	return NULL;
}

/* ---- the clock ---------------------------------------------------------------- */

/* The time in seconds that the messages would have taken. */
static double seconds;

static bool has_clock(void)
{
	return told("slow") || told("slow_first");
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC || !has_clock())
		return syscall(SYS_clock_gettime, clock, now);
	now->tv_sec = seconds;
	now->tv_nsec = (seconds - now->tv_sec) * 1e9;
	return 0;
}

/* ---- CUDA --------------------------------------------------------------------- */

/* Returns a function of libcuda, or NULL if the program has not loaded libcuda. */
static void *cuda(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	return library ? dlsym(library, name) : NULL;
}

/* Returns what CUDA says about memory, or 0 if the memory is not CUDA's. */
static uint64_t attribute(int number, uint64_t address)
{
	int (*get)(void *, int, unsigned long long) = cuda("cuPointerGetAttribute");
	uint64_t value = 0;

	if (get)
		get(&value, number, address);
	return value;
}

static uint64_t buffer_at(uint64_t address)
{
	return attribute(BUFFER_ID, address);
}

/* ---- devices ------------------------------------------------------------------ */

static struct ibv_device devices[16];
static int device_count;

/* Counts the objects that the program has not freed. */
static struct {
	int lists, contexts, domains, queues, regions, pairs;
} left;

static struct region {
	struct ibv_mr mr;
	uint64_t start, end, buffer;
	bool used, by_dma_buf, is_slow;
} regions[8];

static struct pair {
	struct ibv_qp qp;
	unsigned int depth;
	bool used, is_roce;
} pairs[2];

/* The statuses of completions that were not polled yet. */
static enum ibv_wc_status pending[64];
static int pending_count;

/* Directions of which the first transfer is done. */
static struct direction {
	uint64_t to, from;
} begun[8];
static unsigned int begun_count;

static bool is_last(const struct ibv_context *context)
{
	return context->device == &devices[device_count - 1];
}

__attribute__((constructor)) static void find_devices(void)
{
	const char *names = getenv("HCAS");
	char *rest = strdup(names ? names : "mlx5_0"), *name;

	while ((name = strsep(&rest, " ")))
		if (*name)
			strcpy(devices[device_count++].name, name);
}

static void check_files(void)
{
	DIR *all = opendir("/proc/self/fd");
	struct dirent *one;
	char target[256];
	ssize_t length;

	while (all && (one = readdir(all))) {
		length = readlinkat(dirfd(all), one->d_name, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = 0;
		rule(!strstr(target, "dma-buf"), "no dma-buf is open at the end");
	}
	closedir(all);
}

__attribute__((destructor)) static void check_end(void)
{
	int (*lab_left)(void) = cuda("lab_left");

	rule(!left.lists && !left.contexts && !left.domains, "no list, context or domain is left at the end");
	rule(!left.queues && !left.regions && !left.pairs, "no queue, region or queue pair is left at the end");
	check_files();
	rule(!lab_left || !lab_left(), "no GPU memory and no CUDA context is left at the end");
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = calloc(COUNT(devices) + 1, sizeof(*list));
	int i;

	for (i = 0; i < device_count; i++)
		list[i] = &devices[i];
	*count = device_count;
	left.lists++;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
	left.lists--;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

static int poll_cq(struct ibv_cq *queue, int most, struct ibv_wc *found);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **wrong);

/*
 * Fills in the attributes as libmlx5 of rdma-core 17 does: it clears SIZE bytes, and then writes fields
 * behind them. A device whose name ends with 1 cannot page on demand.
 */
static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *found, size_t size)
{
	const char *name = context->device->name;
	bool pages = name[strlen(name) - 1] != '1' && !told("no_odp");

	rule(!input && size == 264, "the form of a question about a device");
	if (told("query_crashes"))
		crash();
	if (told("query_fails") && context->device == devices)
		return EINVAL;
	memset(found, 0, size);
	memset((char *)found + size, 0xff, 80);
	/* IBV_ODP_SUPPORT_IMPLICIT alone would be no support. */
	found->odp_caps.general_caps = IBV_ODP_SUPPORT_IMPLICIT | (pages ? IBV_ODP_SUPPORT : 0);
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct verbs_context *whole;

	if (told("rights") || told("forbidden"))
		return failed(told("rights") ? EACCES : EPERM);
	whole = calloc(1, sizeof(*whole));
	whole->sz = sizeof(*whole);
	whole->query_device_ex = query_device_ex;
	whole->context.device = device;
	whole->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	whole->context.ops.poll_cq = poll_cq;
	whole->context.ops.post_send = post_send;
	if (device == devices && told("no_query"))
		whole->query_device_ex = NULL;
	/* A program that calls this function crashes. */
	if (device == devices && (told("older") || told("shorter")))
		whole->query_device_ex = (void *)0x10;
	if (device == devices && told("older"))
		whole->context.abi_compat = NULL;
	if (device == devices && told("shorter"))
		whole->sz = 8;
	left.contexts++;
	return &whole->context;
}

int ibv_close_device(struct ibv_context *context)
{
	free((char *)context - offsetof(struct verbs_context, context));
	left.contexts--;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attributes)
{
	struct ibv_port_attr *found = (struct ibv_port_attr *)attributes;

	(void)context;
	rule(port == 1, "only the active port is asked");
	found->active_mtu = IBV_MTU_2048;
	found->max_msg_sz = told("short") ? 1 << 20 : 1 << 30;
	found->lid = LID;
	/* Some InfiniBand subnets demand a route by GID. */
	found->flags = told("grh") ? IBV_QPF_GRH_REQUIRED : 0;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *domain = calloc(1, sizeof(*domain));

	domain->context = context;
	left.domains++;
	return domain;
}

int ibv_dealloc_pd(struct ibv_pd *domain)
{
	free(domain);
	left.domains--;
	return 0;
}

/* ---- regions ------------------------------------------------------------------ */

static struct region *new_region(struct ibv_pd *domain, uint64_t address, size_t length)
{
	struct region *region = regions;

	while (region->used)
		region++;
	rule(!buffer_at(address) || attribute(SYNC_MEMOPS, address) == 1,
	     "copies of registered GPU memory are synchronous");
	*region = (struct region){ .start = address, .end = address + length, .used = true };
	region->buffer = buffer_at(address);
	region->mr.context = domain->context;
	region->mr.addr = (void *)address;
	region->mr.length = length;
	region->mr.lkey = region->mr.rkey = FIRST_KEY + (region - regions);
	left.regions++;
	return region;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *domain, void *address, size_t length, int access)
{
	bool is_gpu = buffer_at((uintptr_t)address);

	rule(access == ALL, "a region has all access rights");
	if (told(is_gpu ? "no_module" : "memlock"))
		return failed(is_gpu ? EFAULT : ENOMEM);
	return &new_region(domain, (uintptr_t)address, length)->mr;
}

/* Checks the registration of memory that CUDA has exported. */
static void check_export(uint64_t offset, size_t length, uint64_t iova, int descriptor, int access)
{
	char link[32], expected[64], target[64] = "";
	struct stat status = { 0 };

	snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
	snprintf(expected, sizeof(expected), "/memfd:dma-buf of %#llx (deleted)", (unsigned long long)iova);
	rule(readlink(link, target, sizeof(target) - 1) > 0 && !strcmp(target, expected), "a region of an export");
	rule(!offset && access == ALL && !fstat(descriptor, &status) && length <= (size_t)status.st_size,
	     "a region inside an export");
}

/* Fails if the driver has no such verb, before it looks at the descriptor. The kernel does the same. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *domain, uint64_t offset, size_t length, uint64_t iova, int descriptor,
				 int access)
{
	struct region *region;

	if (told("hangs") && is_last(domain->context))
		sleep(3600);
	if (told("crashes") && is_last(domain->context))
		crash();
	if (told("no_dma_buf"))
		return failed(EOPNOTSUPP);
	if (descriptor == -1) {
		rule(!offset && length == 4096 && !iova && access == IBV_ACCESS_LOCAL_WRITE,
		     "the form of a question");
		return failed(EBADF);
	}
	if (told("no_odp"))
		return failed(EOPNOTSUPP);
	check_export(offset, length, iova, descriptor, access);
	region = new_region(domain, iova, length);
	region->by_dma_buf = true;
	/* The last device is slow by dma-buf with the second GPU. */
	region->is_slow = told("slow") && is_last(domain->context) && attribute(DEVICE_ORDINAL, iova) == 1;
	/* libibverbs also returns the offset in the dma-buf. */
	region->mr.addr = (void *)offset;
	return &region->mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	rule(!left.pairs, "queue pairs go before the memory that they reach");
	regions[mr->lkey - FIRST_KEY].used = false;
	left.regions--;
	return told("dereg") ? EBUSY : 0;
}

/* ---- queue pairs -------------------------------------------------------------- */

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *of_program,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *queue = calloc(1, sizeof(*queue));

	rule(entries >= 2 && !of_program && !channel && !vector, "room for the completions of both queue pairs");
	queue->context = context;
	pending_count = 0;
	left.queues++;
	return queue;
}

int ibv_destroy_cq(struct ibv_cq *queue)
{
	free(queue);
	left.queues--;
	return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *init)
{
	struct pair *pair = &pairs[left.pairs];

	rule(init->qp_type == IBV_QPT_RC && init->send_cq && init->recv_cq && !init->srq, "the form of a queue pair");
	rule(init->cap.max_send_wr >= 1 && init->cap.max_send_sge >= 1, "room for a request");
	rule(left.pairs < (int)COUNT(pairs), "two queue pairs at a time");
	*pair = (struct pair){ .used = true, .depth = init->cap.max_send_wr };
	pair->is_roce = !strncmp(domain->context->device->name, "roce", 4);
	pair->qp.context = domain->context;
	pair->qp.qp_num = FIRST_QP + left.pairs++;
	return &pair->qp;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	pairs[qp->qp_num - FIRST_QP].used = false;
	left.pairs--;
	return 0;
}

static void check_route(const struct pair *pair, const struct ibv_ah_attr *route)
{
	if (!pair->is_roce && !told("grh")) {
		rule(!route->is_global && route->dlid == LID, "a route by LID");
		return;
	}
	rule(route->is_global && route->grh.sgid_index == 3 && route->grh.hop_limit > 1, "a route by GID");
	rule(!memcmp(route->grh.dgid.raw, ipv4, sizeof(ipv4)), "the IPv4 address is preferred");
}

/* Checks some of the attributes. The scenario selftest runs on a kernel, which checks all attributes. */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct pair *pair = &pairs[qp->qp_num - FIRST_QP];
	uint32_t other = FIRST_QP + (pair == pairs);

	if (told("minus_one")) {
		errno = ENOBUFS;
		return -1;
	}
	rule((mask & IBV_QP_STATE) && attr->qp_state == qp->state + 1, "states follow each other");
	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_INIT) {
		rule(attr->port_num == 1 && attr->qp_access_flags == ALL, "the attributes for INIT");
	} else if (qp->state == IBV_QPS_RTR) {
		rule(attr->dest_qp_num == other && attr->rq_psn == (other & 0xffffff),
		     "connected to the other queue pair");
		rule(attr->path_mtu == IBV_MTU_2048 && attr->max_dest_rd_atomic == 1 && attr->ah_attr.port_num == 1,
		     "the attributes for RTR");
		check_route(pair, &attr->ah_attr);
	} else {
		rule(attr->timeout && attr->retry_cnt && attr->rnr_retry && attr->max_rd_atomic == 1,
		     "the attributes for RTS");
		rule(attr->sq_psn == (qp->qp_num & 0xffffff), "the first packet number is its own");
	}
	return 0;
}

/* ---- transfers ---------------------------------------------------------------- */

/*
 * Copies bytes as a device does, which also reaches memory of a GPU. In the double, memory that was freed
 * is gone, although it stays pinned. A device then copies nothing.
 */
static void copy(uint64_t to, uint64_t from, size_t length)
{
	int (*memcpy_any)(unsigned long long, unsigned long long, size_t) = cuda("cuMemcpy");
	bool is_freed = false;
	unsigned int i;

	for (i = 0; i < COUNT(regions); i++)
		if (regions[i].used && regions[i].buffer && !buffer_at(regions[i].start))
			is_freed = true;
	rule(!memcpy_any(to, from, length) || is_freed, "the device copies");
}

static struct region *region_of(uint32_t key)
{
	rule(key - FIRST_KEY < COUNT(regions) && regions[key - FIRST_KEY].used, "each key belongs to a region");
	return &regions[key - FIRST_KEY];
}

/*
 * Returns whether the device reaches the memory at an address. It reaches freed memory only if the memory
 * stays pinned.
 */
static bool reaches(const struct region *region, uint64_t address, size_t length)
{
	rule(region->start <= address && address + length <= region->end, "accesses stay inside a region");
	return buffer_at(region->start) == region->buffer || told("pinned") || region->by_dma_buf;
}

/* Returns whether this is the first transfer in its direction. */
static bool is_first(uint64_t to, uint64_t from)
{
	unsigned int i;

	for (i = 0; i < begun_count; i++)
		if (begun[i].to == to && begun[i].from == from)
			return false;
	rule(begun_count < COUNT(begun), "few directions");
	begun[begun_count++] = (struct direction){ to, from };
	return true;
}

static void check_request(const struct ibv_send_wr *wr, uint32_t length)
{
	unsigned int i;

	for (i = 0; i < COUNT(pairs); i++)
		rule(pairs[i].used && pairs[i].qp.state == IBV_QPS_RTS, "both queue pairs are ready");
	rule(wr->num_sge == 1 && wr->send_flags == IBV_SEND_SIGNALED && !wr->next, "one signaled request");
	rule(pending_count < (int)pairs[0].depth && length <= (told("short") ? 1u << 20 : 1u << 30),
	     "no more messages than the queue has room for, and none longer than the port allows");
}

/* Moves the data, unless a test wants the data to be lost or wrong. */
static void transfer(uint64_t to, uint64_t from, uint32_t length)
{
	bool to_gpu = buffer_at(to);
	uint8_t byte = 0;

	if (!told(to_gpu ? "nothing_to_gpu" : "nothing_from_gpu"))
		copy(to, from, length);
	if (told(to_gpu ? "wrong_to_gpu" : "wrong_from_gpu")) {
		copy((uintptr_t)&byte, to + 12345, 1);
		byte ^= 1;
		copy(to + 12345, (uintptr_t)&byte, 1);
	}
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **wrong)
{
	uint64_t near = wr->sg_list->addr, far = wr->wr.rdma.remote_addr;
	uint32_t length = wr->sg_list->length;
	struct region *local = region_of(wr->sg_list->lkey), *remote = region_of(wr->wr.rdma.rkey);
	bool reached = reaches(local, near, length), is_read = wr->opcode == IBV_WR_RDMA_READ;
	bool is_slow = local->is_slow || remote->is_slow;

	(void)qp;
	(void)wrong;
	reached = reaches(remote, far, length) && reached;
	check_request(wr, length);
	if (told("slow_first") && length > 4096)
		is_slow = is_first(far, near);
	seconds += length / (is_slow ? 1e8 : 1e10);
	rule(is_read || (wr->opcode == IBV_WR_RDMA_WRITE && reached),
	     "read or write, and nothing is written after the memory was freed");
	if (told("lost"))
		return 0;
	if (told("no_descriptor"))
		return ENOMEM;
	if (!reached) {
		pending[0] = told("silent") ? IBV_WC_RETRY_EXC_ERR : IBV_WC_REM_ACCESS_ERR;
		pending_count = 1;
		return 0;
	}
	pending[pending_count++] = IBV_WC_SUCCESS;
	transfer(is_read ? near : far, is_read ? far : near, length);
	return 0;
}

static int poll_cq(struct ibv_cq *queue, int most, struct ibv_wc *found)
{
	int number = pending_count < most ? pending_count : most, i;

	(void)queue;
	for (i = 0; i < number; i++)
		found[i].status = pending[i];
	pending_count -= number;
	memmove(pending, pending + number, pending_count * sizeof(*pending));
	return number;
}
