// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Numbers under which the driver's free callback finds what it is to revoke, and
 * the gate between pinning and unpinning.
 */
#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/rwsem.h>

#include "compat.h"
#include "shim.h"

static NVPM_DEFINE_TABLE(nvpm_ids);
static atomic64_t nvpm_last_id;

u64 nvpm_ids_add(const void *object)
{
	u64 id = atomic64_inc_return(&nvpm_last_id);

	/* A 32-bit kernel would run out of indexes; there is no driver for one. */
	BUILD_BUG_ON(sizeof(unsigned long) < sizeof(u64));
	return nvpm_table_store(&nvpm_ids, id, (void *)object) ? 0 : id;
}

void *nvpm_ids_take(u64 id)
{
	return nvpm_table_erase(&nvpm_ids, id);
}

bool nvpm_ids_has(u64 id)
{
	return nvpm_table_load(&nvpm_ids, id);
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
