// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pinned pages: the resource manager's record of each get_pages, and revocation.
 *
 * A pin is listed with its allocation after its pages are mapped. A free before the callback
 * is armed takes the pages away and calls no client. NVIDIA's get_pages then fails, and does not
 * free its table, which is lost ("tables_lost"); no client can prevent that. The table is kept
 * like a freed one.
 */
#include <linux/module.h>

#include "driver.h"
#include "sim.h"

/* The offsets on which the module relies for every driver (src/c/nvidia.c). */
static_assert(offsetof(struct nvidia_p2p_page_table, version) == 0);
static_assert(offsetof(struct nvidia_p2p_page_table, gpu_uuid) == 24);
static_assert(offsetof(struct nvidia_p2p_page, physical_address) == 0);
static_assert(NVIDIA_P2P_PAGE_SIZE_64KB == 1 && NVIDIA_P2P_PAGE_SIZE_COUNT == 3);
#ifdef NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE
static_assert(NVIDIA_P2P_PAGE_TABLE_VERSION == 0x00020000);
static_assert(offsetof(struct nvidia_p2p_page_table, flags) == 32);
#else
static_assert(NVIDIA_P2P_PAGE_TABLE_VERSION == 0x00010002);
#endif

static struct sim_pin *sim_pin_of(struct sim_object *object)
{
	return container_of(object, struct sim_pin, object);
}

struct sim_pin *sim_pin_new(u64 va, u64 length, bool persistent, void *table)
{
	struct sim_pin *pin = kzalloc_obj(*pin);

	if (!pin)
		return NULL;
	sim_object_init(&pin->object, false, table);
	INIT_LIST_HEAD(&pin->on_alloc);
	INIT_LIST_HEAD(&pin->mappings);
	pin->tgid = task_tgid_nr(current);
	pin->va = va;
	pin->entries = length >> SIM_PAGE_SHIFT;
	pin->persistent = persistent;
	return pin;
}

void sim_pin_drop(struct sim_pin *pin)
{
	if (pin)
		sim_object_put(&pin->object);
}

struct sim_pin *sim_pin_find(const void *table)
{
	struct sim_object *object = sim_object_find(table, false);

	return object ? sim_pin_of(object) : NULL;
}

/* Lists a pin, whose pages a free takes from now on. The allocation and gpu.lock are held. */
void sim_pin_publish(struct sim_pin *pin)
{
	lockdep_assert_held(&sim_gpu.lock);
	list_add_tail(&pin->object.node, &sim_gpu.live);
	sim_watch(pin->alloc, pin->first, pin->entries, true);
	if (pin->persistent) {
		pin->alloc->npersistent++;
		sim_add(SIM_live_persistent_pins, 1);
		return;
	}
	list_add_tail(&pin->on_alloc, &pin->alloc->pins);
	pin->alloc->npins++;
	sim_add(SIM_live_pins, 1);
}

/* Completes the pin's table, with all memory that belongs to it. */
void sim_pin_complete(struct sim_pin *pin, void *memory)
{
	struct nvidia_p2p_page_table *table = pin->object.key;
	u32 i;

	pin->reused = sim_is_used_again(memory);
	/* Without checks and quarantine, NVIDIA's code frees its memory by itself. */
	if (sim_knob(verify) || sim_knob(quarantine_max))
		for (i = pin->entries; i--;)
			sim_object_own(&pin->object, table->pages[i]);
	sim_object_own(&pin->object, table->pages);
	sim_object_own(&pin->object, table->gpu_uuid);
	sim_object_adopt(&pin->object, memory);
	sim_object_seal(&pin->object);
	sim_spend(pin->began, SIM_GET_PAGE, pin->entries);
}

/* Completes a persistent pin, which has no callback to arm. */
void sim_pin_complete_persistent(struct nvidia_p2p_page_table *table)
{
	struct sim_pin *pin = sim_pin_find(table);

	sim_pin_complete(pin, driver_memory(table));
	WRITE_ONCE(pin->state, SIM_PIN_LIVE);
	sim_pin_drop(pin);
}

bool sim_pin_alive(const struct sim_pin *pin)
{
	enum sim_pin_state state = READ_ONCE(pin->state);

	return state == SIM_PIN_LIVE || state == SIM_PIN_REVOKING;
}

/* Records a violation about a pointer that should have been a live table. */
void sim_accuse_table(const char *what, const void *table, const struct sim_pin *pin)
{
	if (pin)
		sim_violation("table_dead", "%s of page table %p after it was %s", what, table,
			      pin->state == SIM_PIN_PUT ? "put" : "revoked");
	else
		sim_violation("table_unknown",
			      "%s of %p, which is no page table, if a failed get_pages did not leave it behind",
			      what, table);
}

/* Returns the allocation of a live pin, with a reference, or NULL. */
struct sim_alloc *sim_pin_alloc(struct sim_pin *pin)
{
	if (!pin)
		return NULL;
	guard(mutex)(&sim_gpu.lock);
	if (pin->alloc)
		sim_alloc_get(pin->alloc);
	return pin->alloc;
}

/*
 * Ends a pin, whose table NVIDIA's code frees next. The API lock is held; the caller holds the
 * pin and the allocation.
 */
void sim_pin_end(struct sim_pin *pin, enum sim_pin_state how)
{
	bool complete = pin->object.first;

	mutex_lock(&sim_gpu.lock);
	if (pin->state == SIM_PIN_LIVE && !pin->persistent)
		sim_add(SIM_live_armed_callbacks, -1);
	list_del_init(&pin->on_alloc);
	WRITE_ONCE(pin->state, how);
	pin->alloc = NULL;
	/* A table that no client has seen is not kept. */
	if (!complete && how == SIM_PIN_PUT) {
		list_del_init(&pin->object.node);
		sim_pin_drop(pin);
	}
	mutex_unlock(&sim_gpu.lock);

	if (complete) {
		sim_object_hand_back(&pin->object,
				     how == SIM_PIN_PUT ? "put" : "the free callback");
		sim_mapping_end_all(pin);
	}
}

/* Takes the pin's pages from BAR1. The API lock is held. */
void sim_pin_unmap(struct sim_alloc *alloc, struct sim_pin *pin)
{
	mutex_lock(&sim_gpu.lock);
	sim_bar1_unmap(alloc, pin);
	sim_watch(alloc, pin->first, pin->entries, false);
	if (pin->persistent)
		alloc->npersistent--;
	else
		alloc->npins--;
	mutex_unlock(&sim_gpu.lock);
	sim_add(pin->persistent ? SIM_live_persistent_pins : SIM_live_pins, -1);
	sim_alloc_put(alloc);
}

/* ---- revocation ---------------------------------------------------------------- */

/* Calls the client's callback. NVIDIA's callback calls this function in its place. */
void sim_pin_tell(void *data)
{
	struct sim_pin *pin = data;
	struct sim_alloc *alloc = pin->alloc;
	struct sim_call call;

	sim_add(SIM_callbacks_fired, 1);
	WRITE_ONCE(alloc->telling, true);
	if (pin->free_callback) {
		call = sim_enter(SIM_free_callback);
		pin->free_callback(pin->data);
		sim_leave(&call);
	}
	WRITE_ONCE(alloc->telling, false);
	sim_pin_end(pin, SIM_PIN_REVOKED);
}

/* Returns the next pin to revoke, with a reference, or NULL. */
static struct sim_pin *sim_pin_to_revoke(struct sim_alloc *alloc)
{
	struct sim_pin *pin;

	guard(mutex)(&sim_gpu.lock);
	pin = list_first_entry_or_null(&alloc->pins, struct sim_pin, on_alloc);
	if (!pin)
		return NULL;
	kref_get(&pin->object.ref);
	if (pin->state == SIM_PIN_LIVE) {
		list_del_init(&pin->on_alloc);
		WRITE_ONCE(pin->state, SIM_PIN_REVOKING);
		sim_add(SIM_live_armed_callbacks, -1);
	}
	return pin;
}

/*
 * Calls the free callback of each pin, one after another. NVIDIA's callback frees a table as
 * soon as the client's callback has returned; only then do the pages leave BAR1. The API lock
 * is held.
 */
void sim_pin_revoke_all(struct sim_alloc *alloc)
{
	struct sim_pin *pin;

	while ((pin = sim_pin_to_revoke(alloc))) {
		if (pin->state == SIM_PIN_REVOKING)
			pin->callback(pin->callback_data);
		else
			sim_pin_end(pin, SIM_PIN_LOST);
		sim_pin_unmap(alloc, pin);
		sim_pin_drop(pin);
	}
}

/*
 * Handles the unloading of a module. A callback into the module that is still armed is a
 * violation, and is disarmed here, because the next free would call freed code.
 */
void sim_pin_module_gone(const struct module *mod)
{
	struct sim_object *object;
	bool running = false;
	struct sim_pin *pin;

	mutex_lock(&sim_gpu.lock);
	list_for_each_entry(object, &sim_gpu.live, node) {
		pin = sim_pin_of(object);
		if (object->mapping || !sim_pin_alive(pin) ||
		    !within_module((unsigned long)pin->free_callback, mod))
			continue;
		sim_violation("unload_armed",
			      "%s was unloaded while the callback of page table %p was %s",
			      mod->name, object->key,
			      pin->state == SIM_PIN_LIVE ? "armed" : "running");
		if (pin->state == SIM_PIN_LIVE)
			pin->free_callback = NULL;
		else
			running = true;
	}
	mutex_unlock(&sim_gpu.lock);

	/* The module's code must stay until its callback has left it. */
	if (running) {
		sim_api_lock_always("a module's end", true);
		sim_api_unlock();
	}
}
