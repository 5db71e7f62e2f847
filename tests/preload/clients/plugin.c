// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library that is linked with libibverbs. Its constructor waits for a thread, which registers
 * memory of the host, a wrong address, and GPU memory if there is a libcuda.
 */
#include <errno.h>
#include <pthread.h>

#include <infiniband/verbs.h>

#include "doubles.h"

static void say(struct ibv_mr *mr)
{
	if (mr)
		printf("registered\n");
	else
		printf("errno=%d\n", errno);
	fflush(stdout);
}

static void *work(void *unused)
{
	struct ibv_pd pd = { 0 };
	void *host = aligned_alloc(4096, 4096);

	say(ibv_reg_mr(&pd, host, 4096, IBV_ACCESS_LOCAL_WRITE));
	say(ibv_reg_mr(&pd, (void *)NO_MEMORY, 4096, IBV_ACCESS_LOCAL_WRITE));
	say(ibv_reg_mr(&pd, (void *)GPU_MEMORY, 4096, IBV_ACCESS_LOCAL_WRITE));
	return unused;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
}
