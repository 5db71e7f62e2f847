/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The last members of struct verbs_context in infiniband/verbs.h. One of these members shows which
 * libibverbs has made a context. layout.c checks that this structure agrees with the header.
 */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <pthread.h>
#include <stddef.h>

struct double_context {
	void *create_cq_ex;
	void *priv;
	void *others[12];
	size_t sz;
	struct {
		void *device;
		void *ops[32];
		int descriptors[3];
		pthread_mutex_t mutex;
		void *abi_compat;
	} context;
};

#define IS_EXTENDED	((void *)~0ul)

#endif
