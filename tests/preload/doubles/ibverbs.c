// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libibverbs.so.1 for tests of the preloaded library. The simulated kernel has no peer memory,
 * and is strict about dma-bufs. As in rdma-core, ibv_reg_mr() calls ibv_reg_mr_iova2() by its name.
 *
 * With -DOLD, there are no dma-bufs. With -DV58, there is no ibv_reg_mr_ex(), as before rdma-core 59. With -DV27, ibv_reg_mr_iova2() is also missing, as in
 * rdma-core 27. With -DCOPY="NAME", each registration is an event `in NAME`. With -DSHIFTED, the
 * functions that register have other addresses. With -DAT_END, the function that identifies the
 * copy is the end of the last page of code. In the environment:
 *
 *	PEER_MEMORY=1		the kernel has peer memory
 *	REAL_ERRNO=N		ibv_reg_mr() fails with this number, in place of EFAULT
 *	DMABUF_ERRNO=N		ibv_reg_dmabuf_mr() fails with this number
 *	REENTER=1		ibv_reg_dmabuf_mr() registers GPU memory with ibv_reg_mr()
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "context.h"
#include "doubles.h"
#include "mr_ex.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* The address of this function shows which copy has made a protection domain. */
#ifdef AT_END
void *create_cq_ex(void);
/* On each processor the function has 8 bytes. */
__asm__(".pushsection .text.at_end, \"ax\", %progbits\n"
	".hidden create_cq_ex\n"
	".balign 4096\n"
	".skip 4096 - 8\n"
	".globl create_cq_ex\n"
	".type create_cq_ex, %function\n"
	"create_cq_ex:\n"
#ifdef __aarch64__
	"mov x0, #0\n"
	"ret\n"
#else
	"xor %eax, %eax\n"
	".skip 5, 0x90\n"
	"ret\n"
#endif
	".popsection\n");
#else
static void *create_cq_ex(void)
{
	return NULL;
}
#endif

static struct double_context context = {
	.create_cq_ex = create_cq_ex,
	.sz = sizeof(context),
	.context.abi_compat = IS_EXTENDED,
};

struct ibv_pd *ibv_alloc_pd(struct ibv_context *unused)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	(void)unused;
	pd->context = (struct ibv_context *)&context.context;
	return pd;
}

/* Returns whether this copy has made the protection domain, or no copy has made it. */
static bool is_own(struct ibv_pd *pd)
{
#ifdef COPY
	event("in %s\n", COPY);
#endif
	return !pd || !pd->context || pd->context == (struct ibv_context *)&context.context;
}

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

#ifdef SHIFTED
/*
 * Because of this function, the functions that follow have other addresses than in a copy without
 * it.
 */
__attribute__((used)) static void shift(void)
{
}
#endif

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			  unsigned int access)
{
	uint64_t start = (uintptr_t)addr;
	bool on_demand = access & IBV_ACCESS_ON_DEMAND;
	bool gpu = in_gpu(start, GPU_MEMORY, 0) || in_gpu(start, GPU_POOL, 0);

	event("reg_mr %p %zu %#lx %#x\n", addr, length, iova, access);
	if (!is_own(pd)) {
		errno = EXDEV;
		return NULL;
	}
#ifdef V27
	/* Versions before rdma-core 30 pass optional flags on, and the kernel refuses them. */
	if (access & IBV_ACCESS_OPTIONAL_RANGE) {
		errno = EINVAL;
		return NULL;
	}
#endif
	if (told("REAL_ERRNO")) {
		errno = told("REAL_ERRNO");
		return NULL;
	}
	if (start == NO_MEMORY || in_gpu(start, PINNED_HOST, 0) || (gpu && !on_demand && !told("PEER_MEMORY"))) {
		errno = EFAULT;
		return NULL;
	}
	return region(pd, addr, length);
}

#ifdef V27
/* Programs of 2006 call this function, with other structures. */
struct ibv_mr *reg_mr_1_0(void)
{
	event("wrong version\n");
	errno = EXDEV;
	return NULL;
}
__asm__(".symver reg_mr_1_0, ibv_reg_mr@IBVERBS_1.0");

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg(pd, addr, length, iova, access);
}

/*
 * In rdma-core 27 this function does not call ibv_reg_mr_iova() by name, but another version might.
 */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova(pd, addr, length, (uintptr_t)addr, access);
}
#else
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}
#endif

int ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

#if !defined(OLD) && !defined(V27) && !defined(V58)
/* This function does not call ibv_reg_mr_iova2(), as in rdma-core. */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr)
{
	event("reg_mr_ex %#lx %zu %#x\n", attr->comp_mask, attr->length, attr->access);
	if (!is_own(pd)) {
		errno = EXDEV;
		return NULL;
	}
	if (in_gpu((uintptr_t)attr->addr, GPU_MEMORY, 0)) {
		errno = EFAULT;
		return NULL;
	}
	return region(pd, attr->addr, attr->length);
}
#endif

#if !defined(OLD) && !defined(V27)
/*
 * Makes the same check as the kernel. The range must be inside the dma-buf, with the same offset in
 * a page.
 */
static bool allowed(uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	const int flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING;
	struct stat file;

	return !fstat(fd, &file) && offset + length <= (uint64_t)file.st_size &&
	       !((offset ^ iova) & (getpagesize() - 1)) && !(access & ~flags);
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
	if (!errno && !is_own(pd))
		errno = EXDEV;
	if (!errno && !allowed(offset, length, iova, fd, access))
		errno = EINVAL;
	return errno ? NULL : region(pd, (void *)(uintptr_t)offset, length);
}
#endif
