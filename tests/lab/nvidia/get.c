// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * nvidia_p2p_get_pages, with a callback or persistent.
 *
 * The range must be 64 KiB-aligned and lie within one allocation of the calling
 * process, found by tgid. The API lock is taken twice: to look the memory up,
 * and to arm the callback. Memory that was freed in between makes it -EINVAL.
 * The table's address is stored early; after a failure it is NULL, or points to
 * nothing. Tokens are a thing of the past: only 0 is accepted.
 *
 * Persistent pages have no callback. The frames stay reserved, whoever frees
 * the memory, until the put. The GPU is kept referenced for as long.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "sim.h"

struct sim_get {
	const char *what;
	u64 va;
	u64 length;
	struct nvidia_p2p_page_table **table;
	void (*callback)(void *data);
	void *data;
	bool persistent;
	void *caller;
	const struct sim_call *call;
};

/* The memory is there, is the caller's, and fits into BAR1. */
static int sim_get_lookup(const struct sim_get *get, struct sim_pin *pin)
{
	struct sim_gpu *gpu = pin->gpu;
	struct sim_alloc *alloc;
	int ret;

	mutex_lock(&gpu->lock);
	alloc = sim_alloc_find(gpu, get->va);
	if (!alloc || alloc->no_p2p ||
	    get->length > alloc->va + alloc->size - get->va) {
		ret = -EINVAL;
		goto out;
	}
	pin->first = (get->va - alloc->va) >> SIM_PAGE_SHIFT;
	pin->entries = get->length >> SIM_PAGE_SHIFT;
	ret = sim_bar1_map(alloc, pin->first, pin->entries);
	if (ret)
		goto out;
	sim_alloc_get(alloc);
	pin->alloc = alloc;
	if (get->persistent)
		alloc->npersistent++;
out:
	mutex_unlock(&gpu->lock);
	return ret;
}

/*
 * Undo the lookup. Only a persistent hold can be the last one on memory that
 * has been freed meanwhile, and giving that back takes the API lock.
 */
static void sim_get_undo(struct sim_pin *pin)
{
	struct sim_alloc *alloc = pin->alloc;
	struct sim_gpu *gpu = pin->gpu;

	if (pin->persistent)
		sim_api_lock_always("a get_pages that failed", false);

	mutex_lock(&gpu->lock);
	sim_bar1_unmap(alloc, pin->first, pin->entries);
	if (pin->persistent)
		alloc->npersistent--;
	pin->alloc = NULL;
	mutex_unlock(&gpu->lock);

	if (pin->persistent) {
		sim_alloc_settle(alloc);
		sim_api_unlock();
	}
	sim_alloc_put(alloc);
}

/* Arm the callback, if there still is something to be called about. */
static int sim_get_publish(struct sim_pin *pin)
{
	struct sim_gpu *gpu = pin->gpu;
	int ret = 0;

	mutex_lock(&gpu->lock);
	if (pin->persistent || pin->alloc->state == SIM_ALLOC_LIVE)
		sim_pin_publish(pin);
	else
		ret = -EINVAL;
	mutex_unlock(&gpu->lock);
	return ret;
}

static int sim_get_pages(const struct sim_get *get)
{
	struct sim_alloc *alloc;
	struct sim_pin *pin;
	int ret;

	if (!get->table) {
		sim_violation(SIM_BAD_NULL, "%s without a place for the page table, from %pS",
			      get->what, get->caller);
		return -EINVAL;
	}
	if (!get->length || !IS_ALIGNED(get->va | get->length, SIM_PAGE_SIZE) ||
	    get->length >> SIM_PAGE_SHIFT > U32_MAX) {
		sim_violation(SIM_BAD_RANGE,
			      "%s of 0x%llx bytes at 0x%llx: not a range of 64 KiB pages, from %pS",
			      get->what, get->length, get->va, get->caller);
		return -EINVAL;
	}

	*get->table = NULL;
	pin = sim_pin_new(&sim_gpu);
	if (!pin)
		return -ENOMEM;
	pin->va = get->va;
	pin->persistent = get->persistent;
	pin->callback = get->callback;
	pin->data = get->data;
	pin->caller = get->caller;
	*get->table = pin->table;

	ret = sim_fail(get->call->which);
	if (ret)
		goto early;
	ret = sim_api_lock(get->what, !get->persistent);
	if (ret)
		goto early;
	ret = sim_get_lookup(get, pin);
	/* The real driver takes memory for each page before it looks. */
	if (ret)
		sim_add(SIM_PAGES_NOT_FOUND, get->length >> SIM_PAGE_SHIFT);
	sim_spend_call(get->call);
	sim_api_unlock();
	if (ret)
		goto early;

	/* From here on pin->alloc is ours, and soon not only ours. */
	alloc = pin->alloc;
	sim_alloc_get(alloc);
	ret = sim_pin_fill(pin);
	if (ret)
		goto late;

	sim_inject(SIM_INJECT_IN_GET_GAP, alloc);

	if (get->persistent) {
		pin->device_ref = true;
		sim_add(SIM_LIVE_DEVICE_REFS, 1);
		sim_get_publish(pin);
	} else {
		ret = sim_api_lock(get->what, true);
		if (ret)
			goto late;
		ret = sim_get_publish(pin);
		sim_api_unlock();
		if (ret)
			goto late;
	}

	sim_inject(SIM_INJECT_BEFORE_GET_RETURNS, alloc);
	sim_inject(SIM_INJECT_AFTER_GET, alloc);
	sim_alloc_put(alloc);
	sim_spend_all(get->call, get->length >> SIM_PAGE_SHIFT);
	return 0;

late:
	sim_get_undo(pin);
	sim_alloc_put(alloc);
	sim_pin_drop(pin);
	*get->table = NULL;
	return ret;

early:
	sim_pin_drop(pin);
	*get->table = SIM_DANGLING;
	return ret;
}

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	CLASS(sim_call, call)(SIM_GET_PAGES);
	struct sim_get get = {
		.call = &call,
		.what = "get_pages",
		.va = virtual_address,
		.length = length,
		.table = page_table,
		.callback = free_callback,
		.data = data,
		.persistent = SIM_OLD && !free_callback,
		.caller = SIM_CALLER,
	};

	if (p2p_token || va_space)
		return -EINVAL;
	if (!free_callback && !get.persistent)
		return -EINVAL;
	return sim_get_pages(&get);
}
SIM_EXPORT(nvidia_p2p_get_pages);

#ifdef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags)
{
	CLASS(sim_call, call)(SIM_GET_PAGES_PERSISTENT);
	struct sim_get get = {
		.call = &call,
		.what = "get_pages_persistent",
		.va = virtual_address,
		.length = length,
		.table = page_table,
		.persistent = true,
		.caller = SIM_CALLER,
	};

#ifdef NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING
	/* Only for GPUs on a coherent link; unknown bits are let through. */
	if (flags & NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING)
		return -ENOTSUPP;
#else
	if (flags)
		return -EINVAL;
#endif
	return sim_get_pages(&get);
}
SIM_EXPORT(nvidia_p2p_get_pages_persistent);
#else
/* Says that get_pages may go without a callback. */
int nvidia_p2p_cap_persistent_pages = 1;
SIM_EXPORT(nvidia_p2p_cap_persistent_pages);
#endif
