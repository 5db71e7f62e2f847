// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The RDMA device, and registrations of one or many at once. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs.h"

struct ibv_mr *regions[REGIONS];
uint64_t bases[REGIONS];
const char *wanted_device = "";
int port = 1, gid_index;
struct ibv_context *context;
struct ibv_pd *pd;
struct ibv_port_attr attributes;

struct ibv_mr **region_of(char **words, int at)
{
	return &regions[number(words, at) % REGIONS];
}

/* Finds the best GID: RoCE v2 before v1, IPv4 before IPv6, global before link-local. */
static void choose_gid(void)
{
	int i, score, best = -1;
	char path[256], kind[64];
	union ibv_gid gid;
	FILE *file;

	for (i = 0; i < attributes.gid_tbl_len && i < 256; i++) {
		static const uint8_t zero[16], mapped[12] = { [10] = 0xff, [11] = 0xff };

		if (ibv_query_gid(context, port, i, &gid) || !memcmp(gid.raw, zero, 16))
			continue;
		kind[0] = 0;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d",
			 ibv_get_device_name(context->device), port, i);
		file = fopen(path, "re");
		if (file) {
			if (!fgets(kind, sizeof(kind), file))
				kind[0] = 0;
			fclose(file);
		}
		score = (strstr(kind, "v2") ? 4 : 0) + (memcmp(gid.raw, mapped, 12) ? 0 : 2) +
			(gid.raw[0] == 0xfe && gid.raw[1] == 0x80 ? 0 : 1);
		if (score > best) {
			best = score;
			gid_index = i;
		}
	}
}

/* verbs: opens the RDMA device, which the other commands need. */
void open_verbs(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i] && !context; i++)
		if (!*wanted_device || !strcmp(wanted_device, ibv_get_device_name(list[i])))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!context) {
		answer("not the RDMA device %s cannot be opened", wanted_device);
		return;
	}
	pd = ibv_alloc_pd(context);
	if (!pd || ibv_query_port(context, port, &attributes)) {
		answer("%s", errno_name(errno));
		return;
	}
	choose_gid();
	answer("ok");
}

static struct ibv_mr *reg(uint64_t address, size_t length)
{
	struct ibv_mr *mr;
	int rights = RIGHTS;

	mr = ibv_reg_mr(pd, (void *)(uintptr_t)address, length, rights);
	/* A device without atomic operations may refuse the right to them. */
	if (!mr && (errno == EINVAL || errno == EOPNOTSUPP)) {
		rights &= ~IBV_ACCESS_REMOTE_ATOMIC;
		mr = ibv_reg_mr(pd, (void *)(uintptr_t)address, length, rights);
	}
	return mr;
}

/* Registers a buffer by dma-buf. Returns NULL and sets errno, or the reason why this is not possible. */
static struct ibv_mr *reg_dma_buf(const struct buffer *buffer, size_t length, const char **reason)
{
	struct ibv_mr *mr;
	int fd = export_dma_buf(buffer, length, reason), error;

	if (fd < 0)
		return NULL;
	mr = ibv_reg_dmabuf_mr(pd, 0, length, buffer->address, fd,
			       RIGHTS & ~IBV_ACCESS_REMOTE_ATOMIC);
	error = errno;
	close(fd);
	errno = error;
	return mr;
}

static void keep(struct ibv_mr **place, struct ibv_mr *mr, uint64_t base)
{
	if (!mr) {
		answer("%s", errno_name(errno));
		return;
	}
	*place = mr;
	bases[place - regions] = base;
	answer("ok");
}

/* reg REGION BUFFER SKIP LENGTH */
static void reg_buffer(char **words)
{
	uint64_t base = buffer_of(words, 2)->address + number(words, 3);

	keep(region_of(words, 1), reg(base, number(words, 4)), base);
}

/* regraw REGION ADDRESS LENGTH: registers what may be no buffer. */
static void reg_raw(char **words)
{
	uint64_t base = number(words, 2);

	keep(region_of(words, 1), reg(base, number(words, 3)), base);
}

/* regbuf REGION BUFFER LENGTH: registers by dma-buf. */
static void reg_buf(char **words)
{
	const struct buffer *buffer = buffer_of(words, 2);
	const char *reason;
	struct ibv_mr *mr = reg_dma_buf(buffer, number(words, 3), &reason);

	if (reason)
		answer("not %s", reason);
	else
		keep(region_of(words, 1), mr, buffer->address);
}

/* key REGION: answers with its address and its key for the other end. */
static void key(char **words)
{
	const struct ibv_mr *mr = *region_of(words, 1);

	if (mr)
		answer("ok %" PRIu64 " %u", bases[number(words, 1) % REGIONS], mr->rkey);
	else
		answer("nothing");
}

/* dereg REGION */
static void dereg(char **words)
{
	struct ibv_mr **place = region_of(words, 1);
	int error;

	if (!*place) {
		answer("nothing");
		return;
	}
	error = ibv_dereg_mr(*place);
	*place = NULL;
	answer("%s", error ? errno_name(error) : "ok");
}

/* child BUFFER LENGTH: tries to register the parent's memory in a child, as programs do that fork. */
static void reg_in_child(char **words)
{
	pid_t child = fork();
	int status;

	if (!child) {
		errno = 0;
		_exit(reg(buffer_of(words, 1)->address, number(words, 2)) ? 0 : errno);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		answer("child-died");
	else
		answer("%s", WEXITSTATUS(status) ? errno_name(WEXITSTATUS(status)) : "ok");
}

/* atomics: answers whether the device has atomic operations. */
static void atomics(char **words)
{
	struct ibv_device_attr is;

	if (ibv_query_device(context, &is))
		answer("%s", errno_name(errno));
	else if (is.atomic_cap == IBV_ATOMIC_NONE)
		answer("not the device has no atomic operations");
	else
		answer("ok");
}

/* ---- many at once ---- */

/* A thread's share of many registrations. */
static struct crowd {
	pthread_t thread;
	const struct buffer *buffer;
	uint64_t first, count, length, skip;
	int error;
} crowds[THREADS];
static uint64_t made, by;

static void *make_share(void *argument)
{
	struct crowd *crowd = argument;
	uint64_t i;

	for (i = crowd->first; i < crowd->first + crowd->count && !crowd->error; i++) {
		regions[i] = reg(crowd->buffer->address + i * crowd->skip, crowd->length);
		if (!regions[i])
			crowd->error = errno;
	}
	return NULL;
}

static void *end_share(void *argument)
{
	struct crowd *crowd = argument;
	uint64_t i;

	for (i = crowd->first; i < crowd->first + crowd->count && !crowd->error; i++) {
		/* A storm that failed has not made all of them. */
		if (regions[i])
			crowd->error = ibv_dereg_mr(regions[i]);
		regions[i] = NULL;
	}
	return NULL;
}

static void by_all(void *(*share)(void *argument), const struct crowd *is)
{
	int error = 0;
	uint64_t i;

	for (i = 0; i < by; i++) {
		crowds[i] = *is;
		crowds[i].first = i * (made / by);
		crowds[i].count = made / by;
		pthread_create(&crowds[i].thread, NULL, share, &crowds[i]);
	}
	for (i = 0; i < by; i++) {
		pthread_join(crowds[i].thread, NULL);
		error = error ? error : crowds[i].error;
	}
	answer("%s", error ? errno_name(error) : "ok");
}

/* storm BUFFER THREADS COUNT LENGTH: makes COUNT registrations at once. */
static void storm(char **words)
{
	struct crowd is = { .buffer = buffer_of(words, 1), .length = number(words, 4) };

	by = number(words, 2);
	made = number(words, 3);
	if (!by || by > THREADS || !made || made > REGIONS || made % by) {
		answer("EINVAL");
		made = 0;
		return;
	}
	if (is.buffer->size > is.length)
		is.skip = (is.buffer->size - is.length) / made;
	by_all(make_share, &is);
}

/* calm: ends all registrations of the storm. */
static void calm(char **words)
{
	if (made)
		by_all(end_share, &(struct crowd){ .length = 0 });
	else
		answer("nothing");
}

/* ---- times ---- */

static void *begin_pointer(const struct buffer *buffer, size_t length)
{
	return reg(buffer->address, length);
}

static void *begin_dma_buf(const struct buffer *buffer, size_t length)
{
	const char *reason;
	void *mr = reg_dma_buf(buffer, length, &reason);

	if (reason)
		errno = EINVAL;
	return mr;
}

static int end_region(void *mr)
{
	return ibv_dereg_mr(mr);
}

/* time BUFFER LENGTH COUNT THREADS HOW: answers with the medians of registering and deregistering, ns. */
static void time_regions(char **words)
{
	static const struct way pointer = { begin_pointer, end_region };
	static const struct way dma_buf = { begin_dma_buf, end_region };

	timed(words, strcmp(words[5], "dmabuf") ? &pointer : &dma_buf);
}

const struct command verbs_commands[] = {
	{ "reg", 4, reg_buffer },
	{ "regraw", 3, reg_raw },
	{ "regbuf", 3, reg_buf },
	{ "key", 1, key },
	{ "dereg", 1, dereg },
	{ "child", 2, reg_in_child },
	{ "storm", 4, storm },
	{ "calm", 0, calm },
	{ "time", 5, time_regions },
	{ "atomics", 0, atomics },
	{ NULL, 0, NULL },
};
