// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library for programs that were written for the kernel of ib_gpudirect and cannot be compiled
 * without its special calls:
 *
 *     cc -shared -fPIC -o ib_gpudirect_preload.so ib_gpudirect_preload.c
 *     LD_PRELOAD=$PWD/ib_gpudirect_preload.so ./program
 *
 * The library answers unknown ioctls on a uverbs device with success. It removes the access bit
 * that marked GPU memory, because the bit has another meaning now.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

struct ibv_mr;
struct ibv_pd;

#define IBV_ACCESS_GPU_MEMORY	(1 << 5)

static int is_uverbs(int fd)
{
	static const char uverbs[] = "/dev/infiniband/uverbs";
	char link[32], file[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, file, sizeof(file)) > 0 && !strncmp(file, uverbs, strlen(uverbs));
}

int ioctl(int fd, unsigned long request, ...)
{
	int (*real)(int fd, unsigned long request, ...) = dlsym(RTLD_NEXT, "ioctl");
	void *argument;
	va_list arguments;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	return request != RDMA_VERBS_IOCTL && is_uverbs(fd) ? 0 : real(fd, request, argument);
}

/*
 * Returns the next function with this name, which may be in another preloaded library. If RTLD_NEXT
 * finds none, returns the function of libibverbs, because RTLD_NEXT does not find a libibverbs that
 * was opened with dlopen().
 */
static void *verbs(const char *name)
{
	void *next = dlsym(RTLD_NEXT, name);

	return next ? next : dlsym(dlopen("libibverbs.so.1", RTLD_LAZY), name);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *pd, void *address, size_t length, int access) =
		verbs("ibv_reg_mr");

	return real(pd, address, length, access & ~IBV_ACCESS_GPU_MEMORY);
}

/* The current header replaces ibv_reg_mr() by this function if the access is not a constant. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *(*real)(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
			       unsigned int access) =
		verbs("ibv_reg_mr_iova2");

	return real(pd, address, length, iova, access & ~IBV_ACCESS_GPU_MEMORY);
}
