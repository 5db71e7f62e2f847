// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libfabric for Python: an end point of the verbs provider, of which most functions of libfabric are
 * inline. Each function returns 0, or a negative error of libfabric.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

struct point {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *addresses;
	struct fid_cq *queue;
	struct fid_ep *end;
};

static struct fi_info *wanted(const char *node)
{
	struct fi_info *hints = fi_allocinfo(), *found = NULL;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	if (fi_getinfo(FI_VERSION(1, 14), node, NULL, FI_SOURCE, hints, &found))
		found = NULL;
	fi_freeinfo(hints);
	return found;
}

/* fabric_open - makes an end point at the address NODE */
int fabric_open(const char *node, struct point **made)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct point *point = calloc(1, sizeof(*point));
	int error;

	*made = point;
	point->info = wanted(node);
	if (!point->info)
		return -FI_ENODATA;
	error = fi_fabric(point->info->fabric_attr, &point->fabric, NULL);
	if (!error)
		error = fi_domain(point->fabric, point->info, &point->domain, NULL);
	if (!error)
		error = fi_av_open(point->domain, &av, &point->addresses, NULL);
	if (!error)
		error = fi_cq_open(point->domain, &cq, &point->queue, NULL);
	if (!error)
		error = fi_endpoint(point->domain, point->info, &point->end, NULL);
	if (!error)
		error = fi_ep_bind(point->end, &point->addresses->fid, 0);
	if (!error)
		error = fi_ep_bind(point->end, &point->queue->fid, FI_TRANSMIT | FI_RECV);
	if (!error)
		error = fi_enable(point->end);
	return error;
}

/* fabric_name - gives the address of the end point, by which its peer knows it */
int fabric_name(struct point *point, void *name, size_t *size)
{
	return fi_getname(&point->end->fid, name, size);
}

int fabric_peer(struct point *point, const void *name, uint64_t *peer)
{
	return fi_av_insert(point->addresses, name, 1, peer, 0, NULL) == 1 ? 0 : -FI_EINVAL;
}

int fabric_register(struct point *point, void *address, size_t length, struct fid_mr **region,
		    uint64_t *key)
{
	int error = fi_mr_reg(point->domain, address, length,
			      FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, region, NULL);

	if (!error)
		*key = fi_mr_key(*region);
	return error;
}

int fabric_deregister(struct fid_mr *region)
{
	return fi_close(&region->fid);
}

/* fabric_progress - lets the end point answer its peer. Returns 1 if a transfer has ended. */
int fabric_progress(struct point *point)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry failed;
	ssize_t n = fi_cq_read(point->queue, &entry, 1);

	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL && fi_cq_readerr(point->queue, &failed, 0) == 1)
		return -failed.err;
	return n;
}

/* fabric_move - reads, or with WRITES writes, and waits for the end of the transfer */
int fabric_move(struct point *point, int writes, uint64_t peer, void *ours, struct fid_mr *region,
		size_t length, uint64_t theirs, uint64_t key)
{
	void *descriptor = fi_mr_desc(region);
	ssize_t error;
	int ended = 0;

	do {
		error = writes ? fi_write(point->end, ours, length, descriptor, peer, theirs, key, NULL) :
				 fi_read(point->end, ours, length, descriptor, peer, theirs, key, NULL);
		if (error == -FI_EAGAIN)
			fabric_progress(point);
	} while (error == -FI_EAGAIN);
	while (!error && !ended)
		ended = fabric_progress(point);
	return error ? error : ended < 0 ? ended : 0;
}
