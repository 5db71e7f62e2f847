// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A preloaded library that counts registrations, and passes them on to the next library. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include <infiniband/verbs.h>

#include "doubles.h"

#undef ibv_reg_mr

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *(*next)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *mr;

	next = dlsym(RTLD_NEXT, "ibv_reg_mr");
	mr = next(pd, addr, length, access);
	event("shim %p %s\n", addr, mr ? "registered" : "failed");
	return mr;
}
