// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gpusync - a server's memory, read into a client's GPU over rdma_cm
 *
 *	gpusync server host|gpu ADDRESS PORT LENGTH
 *	gpusync client ADDRESS PORT
 *
 * As KIRO does it: whoever connects is told where the server's memory is, and
 * from then on reads it whenever he likes, without the server's doing. The
 * client's memory is GPU memory that the CPU cannot touch, the server's either
 * kind; the GPU's is at the beginning of its BAR.
 *
 * Both take orders, a line each, and say `holding` when they wait for one:
 * `put SEED` gives the server's memory other contents, `sync` reads it.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* Where the server's memory is; sent to a client when it has connected. */
struct offer {
	uint64_t address;
	uint64_t length;
	uint32_t rkey;
	uint32_t reserved;
};

/* Waits for an order; NULL when there will be none. */
static char *order(void)
{
	static char line[64];

	puts("holding");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin);
}

/* One end of a connection, with a queue pair if it is the active one. */
static struct rdma_cm_id *end_point(const char *address, const char *port,
				    int flags, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags,
		.ai_port_space = RDMA_PS_IB,
	};
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	*attr = (struct ibv_qp_init_attr) {
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	if (rdma_getaddrinfo(address, port, &hints, &info))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, info, NULL, attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

static struct rdma_cm_id *accept_one(const char *address, const char *port,
				     struct rdma_cm_id **listener)
{
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id;

	*listener = end_point(address, port, RAI_PASSIVE, &attr);
	if (rdma_listen(*listener, 0))
		die("rdma_listen");
	puts("listening");
	fflush(stdout);
	if (rdma_get_request(*listener, &id))
		die("rdma_get_request");
	return id;
}

static void completed(int count, const struct ibv_wc *wc, const char *what)
{
	if (count != 1)
		die(what);
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc->status));
	exit(1);
}

static void serve(struct rdma_cm_id *id, char *memory, size_t length)
{
	struct ibv_mr *mr = rdma_reg_read(id, memory, length);
	struct offer offer = { .address = (uintptr_t)memory, .length = length };
	struct ibv_mr *offer_mr = rdma_reg_msgs(id, &offer, sizeof(offer));
	struct ibv_wc wc;
	char *line;

	if (!mr || !offer_mr)
		die("registering the server's memory");
	offer.rkey = mr->rkey;
	if (rdma_accept(id, NULL))
		die("rdma_accept");
	if (rdma_post_send(id, NULL, &offer, sizeof(offer), offer_mr, 0))
		die("rdma_post_send");
	completed(rdma_get_send_comp(id, &wc), &wc, "telling the client");
	while ((line = order()) && strncmp(line, "put ", 4) == 0)
		pattern_put(memory, length, strtoull(line + 4, NULL, 0));
	rdma_disconnect(id);
	rdma_dereg_mr(offer_mr);
	rdma_dereg_mr(mr);
}

static int server(char **arg)
{
	size_t length = strtoull(arg[3], NULL, 0);
	int gpu = strcmp(arg[0], "gpu") == 0;
	char *memory = gpu ? gpu_alloc(0, length) : malloc(length);
	struct rdma_cm_id *listener, *id;

	if (!memory)
		die("allocating memory");
	id = accept_one(arg[1], arg[2], &listener);
	serve(id, memory, length);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	if (gpu)
		gpu_free(memory, length);
	else
		free(memory);
	return 0;
}

static struct offer connect_to(struct rdma_cm_id *id)
{
	struct offer offer;
	struct ibv_mr *mr = rdma_reg_msgs(id, &offer, sizeof(offer));
	struct ibv_wc wc;

	if (!mr)
		die("registering memory of the host");
	if (rdma_post_recv(id, NULL, &offer, sizeof(offer), mr))
		die("rdma_post_recv");
	if (rdma_connect(id, NULL))
		die("rdma_connect");
	completed(rdma_get_recv_comp(id, &wc), &wc, "hearing from the server");
	rdma_dereg_mr(mr);
	return offer;
}

static void sync_all(struct rdma_cm_id *id, const struct offer *offer,
		     void *memory, struct ibv_mr *mr)
{
	struct ibv_wc wc;

	if (rdma_post_read(id, NULL, memory, offer->length, mr, 0,
			   offer->address, offer->rkey))
		die("rdma_post_read");
	completed(rdma_get_send_comp(id, &wc), &wc,
		  "reading the server's memory");
}

static int client(char **arg)
{
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id = end_point(arg[0], arg[1], 0, &attr);
	struct offer offer = connect_to(id);
	void *memory = gpu_alloc(0, offer.length);
	struct ibv_mr *mr;
	char *line;

	poison(memory, offer.length);
	gpu_hide(memory, offer.length);
	mr = rdma_reg_msgs(id, memory, offer.length);
	if (!mr)
		die("registering GPU memory");
	while ((line = order()) && strcmp(line, "sync\n") == 0)
		sync_all(id, &offer, memory, mr);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	gpu_free(memory, offer.length);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 && strcmp(argv[1], "server") == 0)
		return server(argv + 2);
	if (argc == 4 && strcmp(argv[1], "client") == 0)
		return client(argv + 2);
	fprintf(stderr, "usage: gpusync server host|gpu ADDRESS PORT LENGTH\n"
			"       gpusync client ADDRESS PORT\n");
	return 2;
}
