// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preloaded library that counts registrations, and passes them on to the next library. With
 * -DWITH_IOVA, it wraps the functions that have an address for the device, and not ibv_reg_mr().
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include <infiniband/verbs.h>

#include "doubles.h"
#include "mr_ex.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#ifdef WITH_IOVA
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	__typeof__(ibv_reg_mr_iova) *next = dlsym(RTLD_NEXT, __func__);

	event("shim %s\n", __func__);
	return next(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	__typeof__(ibv_reg_mr_iova2) *next = dlsym(RTLD_NEXT, __func__);

	event("shim %s\n", __func__);
	return next(pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr)
{
	__typeof__(ibv_reg_mr_ex) *next = dlsym(RTLD_NEXT, __func__);

	event("shim %s\n", __func__);
	return next(pd, attr);
}
#else
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *(*next)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *mr;

	next = dlsym(RTLD_NEXT, "ibv_reg_mr");
	mr = next(pd, addr, length, access);
	event("shim %p %s\n", addr, mr ? "registered" : "failed");
	return mr;
}
#endif
