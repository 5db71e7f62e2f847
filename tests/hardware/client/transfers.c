// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Does verbs and CUDA step by step: reads commands, one a line, and answers each with one line. The
 * answer begins with `ok`, with `not` and a reason if something does not exist on this machine, or
 * with the name of an error. The steps (steps.py) give the commands and know which answer is right,
 * so this program has no contract of its own. It also runs at the far end of an ssh connection.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "client.h"

#define REGIONS		8192
#define LINKS		8
#define WORDS		16
#define DEPTH		16
/* The seconds after which a transfer counts as unanswered. */
#define PATIENCE	30
#define RIGHTS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_mr *regions[REGIONS];
/* The address of each region for transfers. For a dma-buf, the library does not keep it. */
static uint64_t bases[REGIONS];

static struct link {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	/* The thread that makes transfers, and how it ended. */
	pthread_t thread;
	bool is_going;
	atomic_bool halt;
	struct ibv_send_wr request;
	struct ibv_sge element;
	unsigned long made;
	int status;
} links[LINKS];

static const char *wanted_device = "";
static int port = 1, gid_index;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_port_attr attributes;

static struct ibv_mr **region_of(char **words, int at)
{
	return &regions[number(words, at) % REGIONS];
}

/* ---- registrations ---- */

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

static void open_verbs(void)
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

static void dereg(struct ibv_mr **place)
{
	int error;

	if (!*place) {
		answer("nothing");
		return;
	}
	error = ibv_dereg_mr(*place);
	*place = NULL;
	answer("%s", error ? errno_name(error) : "ok");
}

/* Tries to register the parent's memory in a child, as programs do that fork. */
static void reg_in_child(struct buffer *buffer, size_t length)
{
	pid_t child = fork();
	int status;

	if (!child) {
		errno = 0;
		_exit(reg(buffer->address, length) ? 0 : errno);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		answer("child-died");
	else
		answer("%s", WEXITSTATUS(status) ? errno_name(WEXITSTATUS(status)) : "ok");
}

/* ---- many at once ---- */

static struct crowd {
	pthread_t thread;
	struct buffer *buffer;
	uint64_t first, count, length, skip;
	const char *how;
	bool is_end;
	int error;
	/* Nanoseconds of registering and deregistering, one pair for each round. */
	uint64_t *times;
} crowds[64];

static void *work(void *argument)
{
	struct crowd *crowd = argument;
	uint64_t i;

	for (i = crowd->first; i < crowd->first + crowd->count && !crowd->error; i++) {
		if (crowd->is_end) {
			/* A storm that failed has not made all of them. */
			if (regions[i])
				crowd->error = ibv_dereg_mr(regions[i]);
			regions[i] = NULL;
			continue;
		}
		regions[i] = reg(crowd->buffer->address + i * crowd->skip, crowd->length);
		if (!regions[i])
			crowd->error = errno;
	}
	return NULL;
}

/* storm BUFFER THREADS COUNT LENGTH: makes COUNT registrations at once. calm: ends all of them. */
static void storm(struct buffer *buffer, uint64_t threads, uint64_t count, uint64_t length)
{
	static uint64_t made, by;
	bool is_end = !buffer;
	int error = 0;
	uint64_t i;

	if (!is_end) {
		made = count;
		by = threads;
	}
	if (!by || by > 64 || made > REGIONS || made % by) {
		answer("EINVAL");
		return;
	}
	for (i = 0; i < by; i++) {
		crowds[i] = (struct crowd){
			.buffer = buffer, .first = i * (made / by), .count = made / by,
			.length = length, .is_end = is_end,
		};
		if (buffer && buffer->size > length)
			crowds[i].skip = (buffer->size - length) / made;
		pthread_create(&crowds[i].thread, NULL, work, &crowds[i]);
	}
	for (i = 0; i < by; i++) {
		pthread_join(crowds[i].thread, NULL);
		error = error ? error : crowds[i].error;
	}
	answer("%s", error ? errno_name(error) : "ok");
}

static void *measure(void *argument)
{
	struct crowd *crowd = argument;
	const char *reason;
	struct ibv_mr *mr;
	uint64_t i, begun, between;

	use_gpu();
	for (i = 0; i < crowd->count && !crowd->error; i++) {
		begun = now();
		if (!strcmp(crowd->how, "dmabuf"))
			mr = reg_dma_buf(crowd->buffer, crowd->length, &reason);
		else
			mr = reg(crowd->buffer->address, crowd->length);
		between = now();
		if (!mr) {
			crowd->error = errno ? errno : EINVAL;
			break;
		}
		crowd->error = ibv_dereg_mr(mr);
		crowd->times[2 * i] = between - begun;
		crowd->times[2 * i + 1] = now() - between;
	}
	return NULL;
}

static int by_value(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* time BUFFER LENGTH COUNT THREADS HOW: answers with the medians of registering and deregistering, ns. */
static void timed(struct buffer *buffer, uint64_t length, uint64_t count, uint64_t threads,
		  const char *how)
{
	uint64_t *all[2], i, j;
	int error = 0;

	if (!threads || threads > 64 || !count || length > buffer->size) {
		answer("EINVAL");
		return;
	}
	for (i = 0; i < threads; i++) {
		crowds[i] = (struct crowd){
			.buffer = buffer, .count = count, .length = length, .how = how,
			.times = calloc(2 * count, sizeof(uint64_t)),
		};
		pthread_create(&crowds[i].thread, NULL, measure, &crowds[i]);
	}
	for (j = 0; j < 2; j++)
		all[j] = calloc(threads * count, sizeof(uint64_t));
	for (i = 0; i < threads; i++) {
		pthread_join(crowds[i].thread, NULL);
		error = error ? error : crowds[i].error;
		for (j = 0; j < 2 * count; j++)
			all[j % 2][i * count + j / 2] = crowds[i].times[j];
		free(crowds[i].times);
	}
	for (j = 0; j < 2; j++)
		qsort(all[j], threads * count, sizeof(uint64_t), by_value);
	if (error)
		answer("%s", errno_name(error));
	else
		answer("ok %" PRIu64 " %" PRIu64, all[0][threads * count / 2],
		       all[1][threads * count / 2]);
	free(all[0]);
	free(all[1]);
}

/* ---- transfers ---- */

/* link LINK: answers with what the other end needs: lid, number, mtu, gid. */
static void new_link(struct link *link)
{
	struct ibv_qp_init_attr wanted = {
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	union ibv_gid gid = { .raw = { 0 } };
	int i;

	link->cq = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
	wanted.send_cq = link->cq;
	wanted.recv_cq = link->cq;
	link->qp = link->cq ? ibv_create_qp(pd, &wanted) : NULL;
	if (!link->qp) {
		answer("%s", errno_name(errno));
		return;
	}
	ibv_query_gid(context, port, gid_index, &gid);
	printf("ok %u %u %d ", attributes.lid, link->qp->qp_num, attributes.active_mtu);
	for (i = 0; i < 16; i++)
		printf("%02x", gid.raw[i]);
	answer("%s", "");
}

/* connect LINK LID NUMBER MTU GID */
static void connect_link(struct link *link, char **words)
{
	struct ibv_qp_attr is = {
		.qp_state = IBV_QPS_INIT, .port_num = port,
		.qp_access_flags = RIGHTS,
	};
	unsigned int byte, i, mtu = number(words, 4);
	int error;

	if (!words[5] || strlen(words[5]) != 32) {
		answer("EINVAL");
		return;
	}
	error = ibv_modify_qp(link->qp, &is, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS);
	if (error) {
		is.qp_access_flags &= ~IBV_ACCESS_REMOTE_ATOMIC;
		error = ibv_modify_qp(link->qp, &is, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				      IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	}
	is.qp_state = IBV_QPS_RTR;
	is.path_mtu = mtu < (unsigned int)attributes.active_mtu ? mtu : attributes.active_mtu;
	is.dest_qp_num = number(words, 3);
	is.max_dest_rd_atomic = 1;
	is.min_rnr_timer = 12;
	is.ah_attr.dlid = number(words, 2);
	is.ah_attr.port_num = port;
	is.ah_attr.is_global = attributes.link_layer == IBV_LINK_LAYER_ETHERNET ||
			       attributes.flags & IBV_QPF_GRH_REQUIRED;
	is.ah_attr.grh.sgid_index = gid_index;
	is.ah_attr.grh.hop_limit = 64;
	for (i = 0; i < 16 && sscanf(words[5] + 2 * i, "%2x", &byte) == 1; i++)
		is.ah_attr.grh.dgid.raw[i] = byte;
	if (!error)
		error = ibv_modify_qp(link->qp, &is, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	is.qp_state = IBV_QPS_RTS;
	is.timeout = 19;
	is.retry_cnt = 6;
	is.rnr_retry = 6;
	is.max_rd_atomic = 1;
	if (!error)
		error = ibv_modify_qp(link->qp, &is, IBV_QP_STATE | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	answer("%s", error ? errno_name(error) : "ok");
}

static void unlink_link(struct link *link)
{
	int error = link->qp ? ibv_destroy_qp(link->qp) : 0;

	if (!error && link->cq)
		error = ibv_destroy_cq(link->cq);
	link->qp = NULL;
	link->cq = NULL;
	answer("%s", error ? errno_name(error) : "ok");
}

/* Waits for a completion. A link polls without rest only while it is measured. */
static int completed(struct link *link, bool is_measured)
{
	uint64_t deadline = now() + PATIENCE * 1000000000ull;
	struct ibv_wc done;
	int count;

	for (;;) {
		count = ibv_poll_cq(link->cq, 1, &done);
		if (count == 1)
			return done.status;
		if (count < 0 || now() > deadline)
			return IBV_WC_RESP_TIMEOUT_ERR;
		if (!is_measured)
			usleep(20);
	}
}

static bool request_of(struct link *link, char **words)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
	} operations[] = {
		{ "write", IBV_WR_RDMA_WRITE }, { "read", IBV_WR_RDMA_READ },
		{ "send", IBV_WR_SEND }, { "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD },
	};
	struct ibv_mr *mr = *region_of(words, 3);
	size_t i;

	memset(&link->request, 0, sizeof(link->request));
	for (i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (words[2] && !strcmp(words[2], operations[i].name))
			break;
	if (i == sizeof(operations) / sizeof(operations[0]) || !mr || !link->qp) {
		answer("EINVAL");
		return false;
	}
	link->element.addr = bases[number(words, 3) % REGIONS] + number(words, 4);
	link->element.length = number(words, 5);
	link->element.lkey = mr->lkey;
	link->request.sg_list = &link->element;
	link->request.num_sge = 1;
	link->request.opcode = operations[i].opcode;
	link->request.send_flags = IBV_SEND_SIGNALED;
	if (link->request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		link->request.wr.atomic.remote_addr = number(words, 6);
		link->request.wr.atomic.rkey = number(words, 7);
		link->request.wr.atomic.compare_add = number(words, 8);
	} else {
		link->request.wr.rdma.remote_addr = number(words, 6);
		link->request.wr.rdma.rkey = number(words, 7);
	}
	return true;
}

static int post(struct link *link)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(link->qp, &link->request, &bad);
}

static void say_status(int status, const char *more)
{
	static const char * const names[] = {
		[IBV_WC_SUCCESS] = "ok", [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR", [IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "REM_OP_ERR", [IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
		[IBV_WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
	};
	const char *name = NULL;

	if (status >= 0 && (size_t)status < sizeof(names) / sizeof(names[0]))
		name = names[status];
	if (name)
		answer("%s%s", name, more);
	else
		answer("status-%d%s", status, more);
}

/* do LINK OPERATION REGION SKIP LENGTH ADDRESS KEY [ADD]: makes one transfer, and waits for its end. */
static void transfer(struct link *link, char **words)
{
	int error;

	if (!request_of(link, words))
		return;
	error = post(link);
	if (error)
		answer("%s", errno_name(error));
	else
		say_status(completed(link, false), "");
}

/* recv LINK REGION SKIP LENGTH: makes room for a message. */
static void receive(struct link *link, char **words)
{
	struct ibv_mr *mr = *region_of(words, 2);
	struct ibv_sge element;
	struct ibv_recv_wr request = { .sg_list = &element, .num_sge = 1 }, *bad;
	int error;

	if (!mr) {
		answer("EINVAL");
		return;
	}
	element = (struct ibv_sge){ bases[number(words, 2) % REGIONS] + number(words, 3),
				    number(words, 4), mr->lkey };
	error = ibv_post_recv(link->qp, &request, &bad);
	answer("%s", error ? errno_name(error) : "ok");
}

static void *go(void *argument)
{
	struct link *link = argument;

	while (!link->halt && !link->status) {
		if (post(link)) {
			link->status = IBV_WC_GENERAL_ERR;
			break;
		}
		link->status = completed(link, false);
		link->made++;
	}
	return NULL;
}

/* go LINK ...: makes the transfer of `do` again and again. halt LINK: ends this; answers how. */
static void start(struct link *link, char **words)
{
	if (link->is_going || !request_of(link, words))
		return;
	link->halt = false;
	link->status = 0;
	link->made = 0;
	link->is_going = true;
	pthread_create(&link->thread, NULL, go, link);
	answer("ok");
}

static void halt(struct link *link)
{
	char made[32];

	if (!link->is_going) {
		answer("nothing");
		return;
	}
	link->halt = true;
	pthread_join(link->thread, NULL);
	link->is_going = false;
	snprintf(made, sizeof(made), " %lu", link->made);
	say_status(link->status, made);
}

/* rate SECONDS LINK-WORDS...: answers with bytes per second. The words are those of `do`. */
static void rate(struct link *link, char **words, double seconds)
{
	uint64_t begun, end, bytes = 0;
	int status = 0, waiting = 0;

	if (!request_of(link, words))
		return;
	begun = now();
	end = begun + seconds * 1e9;
	while (!status && (now() < end || waiting)) {
		while (now() < end && waiting < DEPTH && !post(link))
			waiting++;
		if (!waiting)
			break;
		status = completed(link, true);
		waiting--;
		bytes += link->element.length;
	}
	if (status)
		say_status(status, "");
	else
		answer("ok %.0f", bytes / ((now() - begun) / 1e9));
}

/* latency COUNT LINK-WORDS...: answers with the median time of a transfer in nanoseconds. */
static void latency(struct link *link, char **words, uint64_t count)
{
	uint64_t *times = calloc(count + 1, sizeof(uint64_t)), i, begun;
	int status = 0;

	if (!times || !request_of(link, words)) {
		free(times);
		return;
	}
	for (i = 0; i < count && !status; i++) {
		begun = now();
		status = post(link) ? IBV_WC_GENERAL_ERR : completed(link, true);
		times[i] = now() - begun;
	}
	qsort(times, count, sizeof(uint64_t), by_value);
	if (status)
		say_status(status, "");
	else
		answer("ok %" PRIu64, times[count / 2]);
	free(times);
}

/* ---- the commands ---- */

static void atomics(void)
{
	struct ibv_device_attr is;

	if (ibv_query_device(context, &is))
		answer("%s", errno_name(errno));
	else if (is.atomic_cap == IBV_ATOMIC_NONE)
		answer("not the device has no atomic operations");
	else
		answer("ok");
}

/* Obeys if the command is one of these, and returns whether it is. */
static bool is_obeyed(const struct command *commands, char **words)
{
	int count = 0;

	while (words[count + 1])
		count++;
	for (; commands->name; commands++) {
		if (strcmp(commands->name, words[0]))
			continue;
		if (count < commands->words)
			answer("EINVAL");
		else
			commands->obey(words);
		return true;
	}
	return false;
}

static void obey(char **words)
{
	struct link *link = &links[number(words, 1) % LINKS];
	const char *word = words[0], *reason;
	struct ibv_mr *mr;
	uint64_t base;

	if (is_obeyed(memory_commands, words)) {
		return;
	} else if (!strcmp(word, "verbs")) {
		open_verbs();
	} else if (!pd) {
		answer("not the RDMA device is not open");
	} else if (!strcmp(word, "reg")) {
		base = buffer_of(words, 2)->address + number(words, 3);
		keep(region_of(words, 1), reg(base, number(words, 4)), base);
	} else if (!strcmp(word, "regraw")) {
		base = number(words, 2);
		keep(region_of(words, 1), reg(base, number(words, 3)), base);
	} else if (!strcmp(word, "regbuf")) {
		mr = reg_dma_buf(buffer_of(words, 2), number(words, 3), &reason);
		if (reason)
			answer("not %s", reason);
		else
			keep(region_of(words, 1), mr, buffer_of(words, 2)->address);
	} else if (!strcmp(word, "key")) {
		mr = *region_of(words, 1);
		if (mr)
			answer("ok %" PRIu64 " %u", bases[number(words, 1) % REGIONS], mr->rkey);
		else
			answer("nothing");
	} else if (!strcmp(word, "dereg")) {
		dereg(region_of(words, 1));
	} else if (!strcmp(word, "child")) {
		reg_in_child(buffer_of(words, 1), number(words, 2));
	} else if (!strcmp(word, "storm")) {
		storm(buffer_of(words, 1), number(words, 2), number(words, 3), number(words, 4));
	} else if (!strcmp(word, "calm")) {
		storm(NULL, 0, 0, 0);
	} else if (!strcmp(word, "time") && words[5]) {
		timed(buffer_of(words, 1), number(words, 2), number(words, 3), number(words, 4),
		      words[5]);
	} else if (!strcmp(word, "atomics")) {
		atomics();
	} else if (!strcmp(word, "link")) {
		new_link(link);
	} else if (!strcmp(word, "connect")) {
		connect_link(link, words);
	} else if (!strcmp(word, "unlink")) {
		unlink_link(link);
	} else if (!strcmp(word, "do")) {
		transfer(link, words);
	} else if (!strcmp(word, "recv")) {
		receive(link, words);
	} else if (!strcmp(word, "received")) {
		say_status(completed(link, false), "");
	} else if (!strcmp(word, "go")) {
		start(link, words);
	} else if (!strcmp(word, "halt")) {
		halt(link);
	} else if (!strcmp(word, "rate") && words[2]) {
		rate(&links[number(words + 1, 1) % LINKS], words + 1, strtod(words[1], NULL));
	} else if (!strcmp(word, "latency") && words[2]) {
		latency(&links[number(words + 1, 1) % LINKS], words + 1, number(words, 1));
	} else {
		answer("unknown-command");
	}
}

int main(int argc, char **argv)
{
	char line[1024], *words[WORDS + 1], *rest;
	int i, count;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--gpu"))
			wanted_gpu = argv[i + 1];
		else if (!strcmp(argv[i], "--device"))
			wanted_device = argv[i + 1];
		else if (!strcmp(argv[i], "--port"))
			port = atoi(argv[i + 1]);
	}
	/* A client must not outlive the step that has started it, and would keep memory registered. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (fgets(line, sizeof(line), stdin)) {
		count = 0;
		for (rest = line; count < WORDS && (words[count] = strtok_r(rest, " \n", &rest)); )
			count++;
		words[count] = NULL;
		if (!count)
			continue;
		/* Each command has fewer words than the array, whose rest must be NULL. */
		for (i = count; i <= WORDS; i++)
			words[i] = NULL;
		obey(words);
	}
	return 0;
}
