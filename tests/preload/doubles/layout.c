// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Fails to compile if the structures in context.h are not those of rdma-core's header. */
#include <infiniband/verbs.h>

#include "context.h"

#define BEFORE_CONTEXT(type, member)	(offsetof(type, context) - offsetof(type, member))
#define SAME(member)	_Static_assert(BEFORE_CONTEXT(struct verbs_context, member) == \
				       BEFORE_CONTEXT(struct double_context, member), #member)

SAME(create_cq_ex);
SAME(priv);
SAME(sz);
_Static_assert(offsetof(struct ibv_pd, context) == 0, "ibv_pd.context");
_Static_assert(offsetof(struct ibv_context, abi_compat) ==
	       offsetof(struct double_context, context.abi_compat) -
	       offsetof(struct double_context, context), "ibv_context.abi_compat");
_Static_assert(sizeof(struct ibv_context) ==
	       sizeof(struct double_context) - offsetof(struct double_context, context),
	       "ibv_context");
