// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * nvidia_p2p_get_pages and nvidia_p2p_put_pages, with a callback or persistent.
 *
 * The range must be 64 KiB-aligned and lie within one allocation of the calling
 * process, found by tgid. The API lock is taken twice: to look the memory up,
 * and to arm the callback. Memory that was freed in between makes it -EINVAL.
 * The table's address is stored early; after a failure it is NULL, or points to
 * nothing. Tokens are a thing of the past: only 0 is accepted.
 *
 * Persistent pages have no callback. The frames stay reserved, whoever frees
 * the memory, until the put, which any task may do.
 *
 * put_pages is keyed by the table's address and the caller's tgid. Any other
 * process finds nothing, gets 0, and the callback stays armed. Nor does one find
 * anything that comes after the callback. But since the key is an address, and the
 * driver frees the table behind it as soon as the callback has returned, such a put
 * may meet the table of another pin: it then takes away pages that somebody else
 * uses. With the knob "reuse" addresses come back at once, as they do in the real
 * driver.
 */
#include <linux/export.h>

#include "sim.h"

/* ---- get ------------------------------------------------------------------ */

/* The allocation of this process that has all of a range and may be pinned. gpu.lock is held. */
static struct sim_alloc *sim_pinnable(u64 va, u64 length)
{
	struct sim_alloc *alloc = sim_knob(delisted) ? NULL : sim_alloc_find(va);

	return alloc && !alloc->no_p2p && length <= alloc->va + alloc->size - va ? alloc : NULL;
}

/* The memory is there, is the caller's, and fits into BAR1. */
static int sim_get_lookup(struct sim_pin *pin, u64 length)
{
	struct sim_alloc *alloc;
	int ret;

	guard(mutex)(&sim_gpu.lock);
	alloc = sim_pinnable(pin->va, length);
	if (!alloc)
		return -EINVAL;
	pin->first = (pin->va - alloc->va) >> SIM_PAGE_SHIFT;
	ret = sim_bar1_map(alloc, pin);
	if (ret)
		return ret;
	sim_alloc_get(alloc);
	pin->alloc = alloc;
	alloc->npersistent += pin->persistent;
	return 0;
}

/*
 * Undo the lookup. Only a persistent hold can be the last one on memory that
 * has been freed meanwhile, and giving that back takes the API lock.
 */
static void sim_get_undo(struct sim_pin *pin)
{
	struct sim_alloc *alloc = pin->alloc;

	if (pin->persistent)
		sim_api_lock_always("a get_pages that failed", false);

	mutex_lock(&sim_gpu.lock);
	sim_bar1_unmap(alloc, pin);
	alloc->npersistent -= pin->persistent;
	pin->alloc = NULL;
	mutex_unlock(&sim_gpu.lock);

	if (pin->persistent) {
		sim_alloc_settle(alloc);
		sim_api_unlock();
	}
	sim_alloc_put(alloc);
}

/* Arm the callback, if there still is something to be called about. */
static int sim_get_arm(struct sim_pin *pin, const char *what)
{
	int ret = pin->persistent ? 0 : sim_api_lock(what, true);

	if (ret)
		return ret;
	mutex_lock(&sim_gpu.lock);
	if (pin->persistent || pin->alloc->state == SIM_ALLOC_LIVE)
		sim_pin_publish(pin);
	else
		ret = -EINVAL;
	mutex_unlock(&sim_gpu.lock);
	if (!pin->persistent)
		sim_api_unlock();
	return ret;
}

static int sim_get(enum sim_clock which, const char *what, u64 va, u64 length,
		   struct nvidia_p2p_page_table **table, void (*callback)(void *data), void *data)
{
	struct sim_alloc *alloc;
	struct sim_pin *pin;
	u64 began;
	int ret;

	if (!length || !IS_ALIGNED(va | length, SIM_PAGE_SIZE) ||
	    length >> SIM_PAGE_SHIFT > U32_MAX) {
		sim_violation("bad_range",
			      "%s of 0x%llx bytes at 0x%llx: not a range of 64 KiB pages",
			      what, length, va);
		return -EINVAL;
	}

	*table = NULL;
	pin = sim_pin_new();
	if (!pin)
		return -ENOMEM;
	pin->va = va;
	pin->entries = length >> SIM_PAGE_SHIFT;
	pin->persistent = !callback;
	pin->callback = callback;
	pin->data = data;
	*table = pin->object.piece[0];

	ret = sim_fail(which);
	if (ret)
		goto early;
	ret = sim_api_lock(what, !pin->persistent);
	if (ret)
		goto early;
	began = sim_begin();
	ret = sim_get_lookup(pin, length);
	/* The real driver takes memory for each page before it looks. */
	if (ret)
		sim_add(SIM_pages_not_found, pin->entries);
	sim_spend(began, pin->remapped ? SIM_GET : SIM_GET_AGAIN, 1);
	sim_api_unlock();
	if (ret)
		goto early;

	/* From here on pin->alloc is ours, and soon not only ours. */
	alloc = pin->alloc;
	sim_alloc_get(alloc);
	began = sim_begin();
	ret = sim_pin_fill(pin);
	sim_spend(began, SIM_GET_PAGE, pin->entries);
	if (!ret) {
		sim_inject(SIM_in_get_gap, alloc);
		ret = sim_get_arm(pin, what);
	}
	if (ret) {
		sim_get_undo(pin);
		sim_alloc_put(alloc);
		sim_pin_drop(pin);
		*table = NULL;
		return ret;
	}

	sim_inject(SIM_before_get_returns, alloc);
	sim_inject(SIM_after_get, alloc);
	sim_alloc_put(alloc);
	return 0;

early:
	sim_pin_drop(pin);
	*table = SIM_DANGLING;
	return ret;
}

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	CLASS(sim_call, call)(SIM_get_pages);
	if (p2p_token || va_space || !free_callback)
		return -EINVAL;
	return sim_get(SIM_get_pages, "get_pages", virtual_address, length, page_table,
		       free_callback, data);
}
SIM_EXPORT(nvidia_p2p_get_pages);

/* ---- put ------------------------------------------------------------------ */

/* Take it off the list of what a free revokes. The API lock is held. */
static bool sim_disarm(struct sim_pin *pin)
{
	guard(mutex)(&sim_gpu.lock);
	if (pin->state != SIM_PIN_LIVE)
		return false;
	if (!pin->persistent) {
		list_del_init(&pin->on_alloc);
		sim_add(SIM_live_armed_callbacks, -1);
	}
	return true;
}

/*
 * The allocation that was pinned, with a reference, or NULL; and what is wrong. @before
 * went by this address when the call began. The API lock is held.
 */
static struct sim_alloc *sim_put_locked(const char *what, const void *table, struct sim_pin *pin,
					const struct sim_pin *before, u64 va, bool persistent)
{
	struct sim_alloc *alloc;

	if (!pin) {
		if (!READ_ONCE(sim_gpu.evicted))
			sim_accuse_table(what, table, NULL);
	} else if (pin->persistent != persistent) {
		sim_violation("table_kind", "%s of page table %p, which is%s persistent", what,
			      table, persistent ? " not" : "");
		return NULL;
	} else if (sim_pin_alive(pin)) {
		if ((!persistent && (sim_knob(delisted) || pin->tgid != task_tgid_nr(current))) ||
		    !sim_disarm(pin))
			return NULL;
		if (pin != before || (pin->reused && va != pin->va))
			sim_violation("aba_put",
				      "%s of page table %p is too late: its address has been given to another pin, which ends here",
				      what, table);
		else if (va != pin->va)
			sim_violation("table_address",
				      "%s of page table %p with address 0x%llx, but it was got with 0x%llx",
				      what, table, va, pin->va);
		alloc = sim_pin_alloc(pin);
		sim_pin_release(pin, SIM_PIN_PUT);
		if (persistent)
			sim_alloc_settle(alloc);
		return alloc;
	} else if (pin->state == SIM_PIN_PUT) {
		sim_violation("double_put", "%s of page table %p for the second time", what, table);
		return NULL;
	}
	sim_add(SIM_put_not_found, 1);
	return NULL;
}

static int sim_put(const char *what, u64 va, const void *table, bool persistent)
{
	struct sim_pin *pin = NULL, *before = sim_pin_find(table);
	struct sim_alloc *alloc;
	u64 began;
	int ret;

	sim_inject_pin(SIM_before_put, before);
	ret = sim_api_lock(what, !persistent);
	if (ret)
		goto out;
	began = sim_begin();
	/* The address may mean something else by now, as in the real driver. */
	pin = sim_pin_find(table);
	alloc = sim_put_locked(what, table, pin, before, va, persistent);
	began = sim_spend(began, alloc && pin->remapped ? SIM_PUT : SIM_PUT_AGAIN, 1);
	sim_api_unlock();

	sim_inject(SIM_after_put, alloc);
	if (alloc) {
		sim_spend(began, SIM_PUT_PAGE, pin->entries);
		sim_alloc_put(alloc);
	} else if (persistent) {
		ret = -EINVAL;
	}
out:
	sim_pin_drop(pin);
	sim_pin_drop(before);
	return ret;
}

int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	CLASS(sim_call, call)(SIM_put_pages);
	int ret = page_table ? sim_fail(SIM_put_pages) : 0;

	if (ret || !page_table)
		return ret;
	return sim_put("put_pages", virtual_address, page_table, false);
}
SIM_EXPORT(nvidia_p2p_put_pages);

/* ---- persistent pages ------------------------------------------------------ */

#ifdef NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING
/* Only for GPUs on a coherent link; but the memory is looked up before that is seen. */
static int sim_refuse_bar1(const char *what, u64 va, u64 length)
{
	int ret = sim_api_lock(what, false);
	u64 began;

	if (ret)
		return ret;
	began = sim_begin();
	mutex_lock(&sim_gpu.lock);
	ret = sim_pinnable(va, length) ? -ENOTSUPP : -EINVAL;
	mutex_unlock(&sim_gpu.lock);
	sim_spend(began, SIM_GET_AGAIN, 1);
	sim_api_unlock();
	return ret;
}
#endif

int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags)
{
	CLASS(sim_call, call)(SIM_get_pages_persistent);
#ifdef NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING
	/* Unknown bits are let through. */
	if (flags & NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING)
		return sim_refuse_bar1("get_pages_persistent", virtual_address, length);
#else
	if (flags)
		return -EINVAL;
#endif
	return sim_get(SIM_get_pages_persistent, "get_pages_persistent", virtual_address, length,
		       page_table, NULL, NULL);
}
SIM_EXPORT(nvidia_p2p_get_pages_persistent);

int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags)
{
	CLASS(sim_call, call)(SIM_put_pages_persistent);
	int ret = flags ? -EINVAL : page_table ? sim_fail(SIM_put_pages_persistent) : 0;

	if (ret || !page_table)
		return ret;
	return sim_put("put_pages_persistent", virtual_address, page_table, true);
}
SIM_EXPORT(nvidia_p2p_put_pages_persistent);

/* ---- what does nothing ------------------------------------------------------ */

/* For callbacks of old: the driver frees both itself after the callback. */
static int sim_no_op(enum sim_clock which, const void *key, bool mapping)
{
	struct sim_object *object = sim_object_find(key, mapping);
	const struct sim_pin *pin = NULL;

	if (object && mapping)
		pin = container_of(object, struct sim_mapping, object)->pin;
	else if (object)
		pin = container_of(object, struct sim_pin, object);
	if (pin ? READ_ONCE(pin->state) == SIM_PIN_PUT : !READ_ONCE(sim_gpu.evicted))
		sim_violation("noop_free", "free_%s of %p, which %s",
			      mapping ? "dma_mapping" : "page_table", key,
			      pin ? "was put" : "is none");
	sim_object_put(object);
	return sim_fail(which);
}

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	CLASS(sim_call, call)(SIM_free_page_table);
	return sim_no_op(SIM_free_page_table, page_table, false);
}
SIM_EXPORT(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	CLASS(sim_call, call)(SIM_free_dma_mapping);
	return sim_no_op(SIM_free_dma_mapping, dma_mapping, true);
}
SIM_EXPORT(nvidia_p2p_free_dma_mapping);
