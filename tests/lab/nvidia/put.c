// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * nvidia_p2p_put_pages, and its persistent sibling.
 *
 * put_pages is keyed by the table's address and the caller's tgid. Any other
 * process finds nothing, gets 0, and the callback stays armed. So does one that
 * comes after the callback. A persistent pin may be put by any task.
 *
 * Since the key is an address, and the driver frees the table behind it as soon
 * as the callback has returned, a put that comes after that may meet the table
 * of another pin: it then takes away pages that somebody else uses. With the
 * knob "reuse" addresses come back at once, as they do in the real driver.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/sched.h>

#include "sim.h"

/* Say what is wrong with a put that gives back a pin. The API lock is held. */
static void sim_check_put(const char *what, const struct sim_pin *pin,
			  const struct sim_pin *before, u64 va, void *caller)
{
	if (pin != before || (pin->reused && va != pin->va))
		sim_violation(SIM_BAD_ABA_PUT,
			      "%s of page table %p is too late: its address has been given to another pin, which ends here, from %pS",
			      what, pin->table, caller);
	else if (va != pin->va)
		sim_violation(SIM_BAD_TABLE_ADDRESS,
			      "%s of page table %p with address 0x%llx, but it was got with 0x%llx, from %pS",
			      what, pin->table, va, pin->va, caller);
}

/* Say what is wrong with a put that gives back nothing. */
static void sim_missed_put(const char *what, const void *table,
			   const struct sim_pin *pin, void *caller)
{
	if (pin && pin->state == SIM_PIN_PUT)
		sim_violation(SIM_BAD_DOUBLE_PUT,
			      "%s of page table %p for the second time, from %pS",
			      what, table, caller);
	else if (!pin && !READ_ONCE(sim_gpu.evicted))
		sim_accuse_table(what, table, NULL, caller);
}

/* ---- put ------------------------------------------------------------------ */

/* Take it off the list of what a free revokes. The API lock is held. */
static bool sim_disarm(struct sim_pin *pin)
{
	struct sim_gpu *gpu = pin->gpu;
	bool armed;

	mutex_lock(&gpu->lock);
	armed = pin->state == SIM_PIN_LIVE;
	if (armed && !pin->persistent) {
		list_del_init(&pin->on_alloc);
		sim_add(SIM_LIVE_ARMED_CALLBACKS, -1);
	}
	mutex_unlock(&gpu->lock);
	return armed;
}

/*
 * Old drivers copy the GPU's name from the table before they have any lock.
 * Whether it is alive then is the client's affair; what becomes of it later is
 * the driver's.
 */
static void sim_put_reads(const struct sim_pin *pin, const void *table,
			  void *caller)
{
	if (SIM_OLD && pin && !sim_pin_alive(pin))
		sim_accuse_table("put_pages", table, pin, caller);
}

/* The allocation that was pinned, with a reference, or NULL. */
static struct sim_alloc *sim_put_locked(struct sim_pin *pin, const void *table,
					const struct sim_pin *before, u64 va,
					void *caller)
{
	struct sim_alloc *alloc;

	if (pin && sim_pin_alive(pin) && pin->tgid == task_tgid_nr(current) &&
	    sim_disarm(pin)) {
		alloc = sim_pin_alloc(pin);
		sim_check_put("put_pages", pin, before, va, caller);
		sim_pin_release(pin, SIM_PIN_PUT);
		return alloc;
	}
	if (pin && sim_pin_alive(pin))
		return NULL;
	sim_missed_put("put_pages", table, pin, caller);
	if (!pin || pin->state != SIM_PIN_PUT)
		sim_add(SIM_PUT_NOT_FOUND, 1);
	return NULL;
}

static int sim_put(const struct sim_call *call,
		   struct nvidia_p2p_page_table *table, struct sim_pin *before,
		   u64 va, void *caller)
{
	struct sim_alloc *alloc;
	struct sim_pin *pin;
	int ret;

	sim_inject_pin(SIM_INJECT_BEFORE_PUT, before);
	ret = sim_api_lock("put_pages", true);
	if (ret)
		return ret;
	/* The address may mean something else by now, as in the real driver. */
	pin = sim_pin_find(&sim_gpu, table);
	alloc = sim_put_locked(pin, table, before, va, caller);
	sim_spend_call(call);
	sim_api_unlock();

	sim_inject(SIM_INJECT_AFTER_PUT, alloc);
	if (alloc) {
		sim_spend_all(call, pin->entries);
		sim_alloc_put(alloc);
	}
	sim_pin_drop(pin);
	return 0;
}

/* ---- put of a persistent pin --------------------------------------------- */

/* The GPU is let go even by a put that fails. */
static void sim_put_device(struct sim_pin *pin)
{
	mutex_lock(&pin->gpu->lock);
	if (pin->device_ref)
		sim_add(SIM_LIVE_DEVICE_REFS, -1);
	pin->device_ref = false;
	mutex_unlock(&pin->gpu->lock);
}

static int sim_put_persistent(const struct sim_call *call, const char *what,
			      struct sim_pin *pin, u64 va, void *caller)
{
	struct sim_alloc *alloc;
	int ret;

	sim_inject_pin(SIM_INJECT_BEFORE_PUT, pin);
	ret = sim_api_lock(what, false);
	if (ret) {
		sim_put_device(pin);
		return ret;
	}
	alloc = sim_pin_alloc(pin);
	if (alloc) {
		sim_check_put(what, pin, pin, va, caller);
		sim_put_device(pin);
		sim_pin_release(pin, SIM_PIN_PUT);
		sim_alloc_settle(alloc);
		sim_spend_call(call);
	} else {
		sim_violation(SIM_BAD_DOUBLE_PUT,
			      "%s of page table %p by two tasks at once, from %pS",
			      what, pin->table, caller);
		ret = -EINVAL;
	}
	sim_api_unlock();
	if (alloc) {
		sim_inject(SIM_INJECT_AFTER_PUT, alloc);
		sim_spend_all(call, pin->entries);
		sim_alloc_put(alloc);
	}
	return ret;
}

/* ---- the exports ----------------------------------------------------------- */

int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct sim_pin *pin;
	int ret;

	CLASS(sim_call, call)(SIM_PUT_PAGES);
	if (!page_table)
		return 0;
	ret = sim_fail(SIM_PUT_PAGES);
	if (ret)
		return ret;

	pin = sim_pin_find(&sim_gpu, page_table);
	sim_put_reads(pin, page_table, SIM_CALLER);
	if (!pin || !pin->persistent) {
		ret = sim_put(&call, page_table, pin, virtual_address, SIM_CALLER);
	} else if (SIM_OLD) {
		ret = sim_put_persistent(&call, "put_pages", pin,
					 virtual_address, SIM_CALLER);
	} else {
		sim_violation(SIM_BAD_TABLE_KIND,
			      "put_pages of persistent page table %p, from %pS",
			      page_table, SIM_CALLER);
	}
	sim_pin_drop(pin);
	return ret;
}
SIM_EXPORT(nvidia_p2p_put_pages);

#ifdef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags)
{
	const char *what = "put_pages_persistent";
	struct sim_pin *pin;
	int ret = -EINVAL;

	CLASS(sim_call, call)(SIM_PUT_PAGES_PERSISTENT);
	if (flags)
		return -EINVAL;
	if (!page_table)
		return 0;

	pin = sim_pin_find(&sim_gpu, page_table);
	if (!pin || !sim_pin_alive(pin)) {
		if (pin && pin->state == SIM_PIN_REVOKED)
			sim_accuse_table(what, page_table, pin, SIM_CALLER);
		else
			sim_missed_put(what, page_table, pin, SIM_CALLER);
	} else if (!pin->persistent) {
		sim_violation(SIM_BAD_TABLE_KIND,
			      "%s of page table %p, which is not persistent, from %pS",
			      what, page_table, SIM_CALLER);
	} else {
		ret = sim_fail(SIM_PUT_PAGES_PERSISTENT);
		if (ret)
			sim_put_device(pin);
		else
			ret = sim_put_persistent(&call, what, pin,
						 virtual_address, SIM_CALLER);
	}
	sim_pin_drop(pin);
	return ret;
}
SIM_EXPORT(nvidia_p2p_put_pages_persistent);
#endif
