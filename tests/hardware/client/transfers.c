// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Transfers between two links, which a program has connected to each other. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs.h"

#define LINKS		8
#define DEPTH		16
/* The seconds after which a transfer counts as unanswered. */
#define PATIENCE	30

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

static struct link *link_of(char **words)
{
	return &links[number(words, 1) % LINKS];
}

/* link LINK: answers with what the other end needs: lid, number, mtu, gid. */
static void new_link(char **words)
{
	struct link *link = link_of(words);
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
static void connect_link(char **words)
{
	struct link *link = link_of(words);
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

/* unlink LINK */
static void unlink_link(char **words)
{
	struct link *link = link_of(words);
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
static void transfer(char **words)
{
	struct link *link = link_of(words);
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
static void receive(char **words)
{
	struct link *link = link_of(words);
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

/* go LINK ...: makes the transfer of `do` again and again, until `halt`. */
static void start(char **words)
{
	struct link *link = link_of(words);

	if (link->is_going || !request_of(link, words))
		return;
	link->halt = false;
	link->status = 0;
	link->made = 0;
	link->is_going = true;
	pthread_create(&link->thread, NULL, go, link);
	answer("ok");
}

/* halt LINK: ends the transfers of `go`, and answers how they ended and how many there were. */
static void halt(char **words)
{
	struct link *link = link_of(words);
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
static void rate(char **all)
{
	char **words = all + 1;
	struct link *link = link_of(words);
	double seconds = strtod(all[1], NULL);
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
static void latency(char **all)
{
	char **words = all + 1;
	struct link *link = link_of(words);
	uint64_t count = number(all, 1), *times = calloc(count + 1, sizeof(uint64_t)), i, begun;
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

/* received LINK: waits for a message. */
static void received(char **words)
{
	say_status(completed(link_of(words), false), "");
}

const struct command transfer_commands[] = {
	{ "link", 1, new_link },
	{ "connect", 5, connect_link },
	{ "unlink", 1, unlink_link },
	{ "do", 5, transfer },
	{ "recv", 4, receive },
	{ "received", 1, received },
	{ "go", 7, start },
	{ "halt", 1, halt },
	{ "rate", 8, rate },
	{ "latency", 8, latency },
	{ NULL, 0, NULL },
};
