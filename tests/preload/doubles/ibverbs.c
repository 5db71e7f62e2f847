// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libibverbs.so.1 for tests of the preloaded library, with a kernel behind it that has no peer
 * memory and is strict about dma-bufs. As in the real one, ibv_reg_mr() calls ibv_reg_mr_iova2() by
 * its name. In the environment:
 *
 *	PEER_MEMORY=1		there is some
 *	REAL_ERRNO=N		why ibv_reg_mr() fails, instead of EFAULT
 *	DMABUF_ERRNO=N		why ibv_reg_dmabuf_mr() fails
 *	REENTER=1		ibv_reg_dmabuf_mr() registers GPU memory with ibv_reg_mr()
 */
#include <errno.h>
#include <sys/stat.h>

#include <infiniband/verbs.h>

#include "doubles.h"
#include "mr_ex.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct ibv_mr *region(struct ibv_pd *pd, void *addr, size_t length)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->lkey = 1;
	mr->rkey = 2;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	uint64_t start = (uintptr_t)addr;
	bool on_demand = access & IBV_ACCESS_ON_DEMAND;
	bool gpu = in_gpu(start, GPU_MEMORY, 0) || in_gpu(start, GPU_POOL, 0);

	event("reg_mr %p %zu %#lx %#x\n", addr, length, iova, access);
	if (told("REAL_ERRNO")) {
		errno = told("REAL_ERRNO");
		return NULL;
	}
	if (start == NO_MEMORY || (gpu && !on_demand && !told("PEER_MEMORY"))) {
		errno = EFAULT;
		return NULL;
	}
	return region(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

#ifndef OLD
/* It does not go by way of ibv_reg_mr_iova2(). */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr)
{
	event("reg_mr_ex %#lx %zu %#x\n", attr->comp_mask, attr->length, attr->access);
	if (in_gpu((uintptr_t)attr->addr, GPU_MEMORY, 0)) {
		errno = EFAULT;
		return NULL;
	}
	return region(pd, attr->addr, attr->length);
}

/* As the kernel: inside the dma-buf, and the same bytes of a page. */
static bool allowed(uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	const int flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;
	struct stat file;

	return !fstat(fd, &file) && offset + length <= (uint64_t)file.st_size &&
	       (offset & 4095) == (iova & 4095) && !(access & ~flags);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	event("reg_dmabuf_mr %#lx %zu %#lx %#x\n", offset, length, iova, access);
	if (told("REENTER")) {
		struct ibv_mr *mr = ibv_reg_mr(pd, (void *)GPU_MEMORY, 1, 0);

		event("inner %s %d\n", mr ? "registered" : "failed", mr ? 0 : errno);
	}
	errno = told("DMABUF_ERRNO");
	if (!errno && !allowed(offset, length, iova, fd, access))
		errno = EINVAL;
	return errno ? NULL : region(pd, (void *)(uintptr_t)offset, length);
}
#endif
