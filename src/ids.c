// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Numbers under which the driver's free callback finds what it is to revoke, and
 * the gate between pinning and unpinning.
 */
#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "shim.h"

/* Of a registration, which holds memory for it: an xarray of a few would hold pages. */
struct nvpm_id {
	struct hlist_node node;
	u64 number;
	const void *object;
};

/* The driver carries a number in a pointer. */
static_assert(sizeof(void *) >= sizeof(u64));

static DEFINE_HASHTABLE(nvpm_ids, 10);
static DEFINE_SPINLOCK(nvpm_ids_lock);
static atomic64_t nvpm_last_id;

static struct nvpm_id *nvpm_ids_find(u64 number)
{
	struct nvpm_id *id;

	hash_for_each_possible(nvpm_ids, id, node, number)
		if (id->number == number)
			return id;
	return NULL;
}

u64 nvpm_ids_add(const void *object)
{
	struct nvpm_id *id = kmalloc_obj(*id, GFP_KERNEL);
	u64 number = atomic64_inc_return(&nvpm_last_id);

	if (!id)
		return 0;
	id->number = number;
	id->object = object;
	spin_lock(&nvpm_ids_lock);
	hash_add(nvpm_ids, &id->node, number);
	spin_unlock(&nvpm_ids_lock);
	return number;
}

void *nvpm_ids_take(u64 number)
{
	const void *object = NULL;
	struct nvpm_id *id;

	spin_lock(&nvpm_ids_lock);
	id = nvpm_ids_find(number);
	if (id) {
		hash_del(&id->node);
		object = id->object;
	}
	spin_unlock(&nvpm_ids_lock);
	kfree(id);
	return (void *)object;
}

bool nvpm_ids_has(u64 number)
{
	bool has;

	spin_lock(&nvpm_ids_lock);
	has = nvpm_ids_find(number);
	spin_unlock(&nvpm_ids_lock);
	return has;
}

static DECLARE_RWSEM(nvpm_gate);

void nvpm_gate_enter(bool exclusive)
{
	if (exclusive)
		down_write(&nvpm_gate);
	else
		down_read(&nvpm_gate);
}

void nvpm_gate_leave(bool exclusive)
{
	if (exclusive)
		up_write(&nvpm_gate);
	else
		up_read(&nvpm_gate);
}
