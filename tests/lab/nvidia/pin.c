// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page tables: what get_pages hands out, and what becomes of it. DMA mappings (dma.c)
 * have the same life.
 *
 * In the real driver both belong to the driver. put_pages frees the table and
 * every DMA mapping made from it; so does the driver on its own as soon as the
 * free callback of a table has returned.
 *
 * Here nothing of that goes back to the allocator at once. It is filled with
 * 0x6b and kept in a quarantine, oldest out first, for as long as the knob
 * "quarantine_max" allows: a client that reads a table after its end finds a
 * version of 0x6b6b6b6b, one that writes is found out when the table leaves the
 * quarantine, and one that hands it back to the driver is told what it was.
 *
 * What a client sees is summed up when it is made, and checked at each call
 * that names it.
 */
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/string.h>

#include "sim.h"

/* Where every driver has what the module does not look after itself (src/c/nvidia.c). */
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

/* ---- what a client sees ------------------------------------------------- */

static struct sim_pin *sim_pin_of(struct sim_object *object)
{
	return container_of(object, struct sim_pin, object);
}

void sim_object_init(struct sim_object *object, bool mapping)
{
	kref_init(&object->ref);
	INIT_LIST_HEAD(&object->node);
	object->mapping = mapping;
}

static void sim_object_destroy(struct kref *ref)
{
	struct sim_object *object = container_of(ref, struct sim_object, ref);
	struct sim_mapping *m = container_of(object, struct sim_mapping, object);

	if (object->mapping) {
		sim_pin_drop(m->pin);
		kvfree(m->runs);
	}
	if (!object->lent)
		kfree(object->piece[0]);
	kvfree(object->piece[1]);
	/* The first member of either. */
	kfree(object);
}

void sim_object_put(struct sim_object *object)
{
	if (object)
		kref_put(&object->ref, sim_object_destroy);
}

static u32 sim_object_hash(const struct sim_object *object)
{
	u32 hash = jhash(object->piece[0], object->size[0], 0);

	return jhash(object->piece[1], object->size[1], hash) | 1;
}

/* It is complete: from here on nobody may change it. */
void sim_object_seal(struct sim_object *object)
{
	if (sim_knob(verify))
		object->hash = sim_object_hash(object);
}

/* Nobody poisons it meanwhile: of a table that is alive the API lock is held. */
void sim_object_check(struct sim_object *object, const char *where)
{
	if (!object->hash || object->hash == sim_object_hash(object))
		return;
	sim_violation(object->mapping ? "mapping_modified" : "table_modified",
		      "%p has been changed by its client, seen in %s", object->piece[0], where);
	object->hash = 0;
}

static void sim_object_inspect(const struct sim_object *object)
{
	int i;

	for (i = object->lent; i < 2; i++)
		if (memchr_inv(object->piece[i], SIM_POISON, object->size[i]))
			sim_violation("write_after_free",
				      "%s %p was written to after it had been freed",
				      object->mapping ? "DMA mapping" : "page table",
				      object->piece[0]);
}

/* Let go of what is more than @max. gpu.lock is held. */
static void sim_evict(u32 max)
{
	struct sim_object *object;

	while (sim_gpu.ndead > max) {
		object = list_first_entry(&sim_gpu.dead, struct sim_object, node);
		list_del_init(&object->node);
		sim_gpu.ndead--;
		sim_gpu.evicted = true;
		sim_object_inspect(object);
		sim_object_put(object);
	}
}

void sim_quarantine_drain(void)
{
	guard(mutex)(&sim_gpu.lock);
	sim_evict(0);
}

/* Its end: only the quarantine knows it now. */
void sim_object_bury(struct sim_object *object)
{
	memset(object->piece[0], SIM_POISON, object->size[0]);
	memset(object->piece[1], SIM_POISON, object->size[1]);
	guard(mutex)(&sim_gpu.lock);
	list_move_tail(&object->node, &sim_gpu.dead);
	sim_gpu.ndead++;
	sim_evict(sim_knob(quarantine_max));
}

/* A reference to what goes by this address, or else to the last that went by it. */
struct sim_object *sim_object_find(const void *key, bool mapping)
{
	struct sim_object *object;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry(object, &sim_gpu.live, node)
		if (object->piece[0] == key && object->mapping == mapping)
			goto found;
	list_for_each_entry_reverse(object, &sim_gpu.dead, node)
		if (object->piece[0] == key && object->mapping == mapping)
			goto found;
	return NULL;
found:
	kref_get(&object->ref);
	return object;
}

/* ---- page tables ------------------------------------------------------- */

struct sim_pin *sim_pin_find(const void *table)
{
	struct sim_object *object = sim_object_find(table, false);

	return object ? sim_pin_of(object) : NULL;
}

void sim_pin_drop(struct sim_pin *pin)
{
	if (pin)
		sim_object_put(&pin->object);
}

/*
 * The table that this process got rid of last, as the kernel's allocator might
 * give it out: an address is a key, and this is how a key gets a new meaning.
 */
static void *sim_table_again(void)
{
	struct sim_object *dead;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry_reverse(dead, &sim_gpu.dead, node) {
		if (dead->mapping || dead->lent ||
		    sim_pin_of(dead)->tgid != task_tgid_nr(current))
			continue;
		sim_object_inspect(dead);
		dead->lent = true;
		return memset(dead->piece[0], 0, dead->size[0]);
	}
	return NULL;
}

/* The structure alone: its address is known to the client before the rest is. */
struct sim_pin *sim_pin_new(void)
{
	struct sim_pin *pin = kzalloc_obj(*pin);
	void *table;

	if (!pin)
		return NULL;
	sim_object_init(&pin->object, false);
	INIT_LIST_HEAD(&pin->on_alloc);
	INIT_LIST_HEAD(&pin->mappings);
	pin->tgid = task_tgid_nr(current);
	table = sim_knob(reuse) ? sim_table_again() : NULL;
	pin->reused = table;
	/* With room for flags: it may be made to claim a version that has them. */
	pin->object.size[0] = sizeof(struct nvidia_p2p_page_table) + sizeof(u64);
	pin->object.piece[0] = table ?: kzalloc(pin->object.size[0], GFP_KERNEL);
	if (!pin->object.piece[0]) {
		sim_pin_drop(pin);
		return NULL;
	}
	return pin;
}

/*
 * Fill the table with the pages at pin->first of pin->alloc. The array of pointers comes
 * last: what reads behind its end reads behind that of the allocation.
 */
int sim_pin_fill(struct sim_pin *pin)
{
	struct nvidia_p2p_page_table *table = pin->object.piece[0];
	struct nvidia_p2p_page **pages, *page;
	u32 i, n = pin->entries;
	size_t size = SIM_UUID_LEN + (size_t)n * (sizeof(*page) + sizeof(*pages));
	u8 *uuid = kvzalloc(size, GFP_KERNEL);

	if (!uuid)
		return -ENOMEM;
	page = (void *)(uuid + SIM_UUID_LEN);
	pages = (void *)(page + n);
	for (i = 0; i < SIM_UUID_LEN; i++)
		uuid[i] = 0xa0 + i;
	for (i = 0; i < n; i++) {
		page[i].physical_address = sim_alloc_phys(pin->alloc, pin->first + i);
		pages[i] = &page[i];
	}
	pin->object.piece[1] = uuid;
	pin->object.size[1] = size;

	table->version = sim_knob(page_table_version);
	table->page_size = sim_knob(page_size);
	table->pages = pages;
	table->entries = n;
	table->gpu_uuid = uuid;
#ifdef NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE
	if (pin->alloc->coherent)
		table->flags = NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE;
#endif
	sim_object_seal(&pin->object);
	return 0;
}

/* From here on others know of it, and a free revokes it. gpu.lock is held. */
void sim_pin_publish(struct sim_pin *pin)
{
	lockdep_assert_held(&sim_gpu.lock);
	pin->state = SIM_PIN_LIVE;
	list_add_tail(&pin->object.node, &sim_gpu.live);
	if (pin->persistent) {
		sim_add(SIM_live_persistent_pins, 1);
		return;
	}
	list_add_tail(&pin->on_alloc, &pin->alloc->pins);
	pin->alloc->npins++;
	sim_add(SIM_live_pins, 1);
	sim_add(SIM_live_armed_callbacks, 1);
}

bool sim_pin_alive(const struct sim_pin *pin)
{
	enum sim_pin_state state = READ_ONCE(pin->state);

	return state == SIM_PIN_LIVE || state == SIM_PIN_REVOKING;
}

/* The allocation of a live pin, with a reference, or NULL. */
struct sim_alloc *sim_pin_alloc(struct sim_pin *pin)
{
	if (!pin)
		return NULL;
	guard(mutex)(&sim_gpu.lock);
	if (pin->alloc)
		sim_alloc_get(pin->alloc);
	return pin->alloc;
}

/* Say what is wrong with a pointer that should have been a live table. */
void sim_accuse_table(const char *what, const void *table, const struct sim_pin *pin)
{
	if (pin)
		sim_violation("table_dead", "%s of page table %p after it was %s", what, table,
			      pin->state == SIM_PIN_PUT ? "put" : "revoked");
	else
		sim_violation("table_unknown", "%s of %p, which is %s", what, table,
			      table == SIM_DANGLING ? "what a failed get_pages left behind" :
						      "no page table");
}

/*
 * The end of a pin, by put or by revocation. The API lock is held and the
 * callback is not armed any more; the caller holds the allocation.
 */
void sim_pin_release(struct sim_pin *pin, enum sim_pin_state how)
{
	struct sim_alloc *alloc = pin->alloc;

	sim_object_check(&pin->object, how == SIM_PIN_PUT ? "put" : "the free callback");

	mutex_lock(&sim_gpu.lock);
	WRITE_ONCE(pin->state, how);
	pin->alloc = NULL;
	mutex_unlock(&sim_gpu.lock);

	sim_mapping_end_all(pin);

	mutex_lock(&sim_gpu.lock);
	sim_bar1_unmap(alloc, pin);
	if (pin->persistent)
		alloc->npersistent--;
	else
		alloc->npins--;
	mutex_unlock(&sim_gpu.lock);
	sim_add(pin->persistent ? SIM_live_persistent_pins : SIM_live_pins, -1);
	sim_object_bury(&pin->object);
	sim_alloc_put(alloc);
}

static struct sim_pin *sim_pin_to_revoke(struct sim_alloc *alloc)
{
	struct sim_pin *pin;

	guard(mutex)(&sim_gpu.lock);
	pin = list_first_entry_or_null(&alloc->pins, struct sim_pin, on_alloc);
	if (pin) {
		list_del_init(&pin->on_alloc);
		WRITE_ONCE(pin->state, SIM_PIN_REVOKING);
	}
	return pin;
}

/*
 * Tell every client that its pages are going, one after another, and take its
 * table away as soon as its callback has returned. The API lock is held.
 */
void sim_pin_revoke_all(struct sim_alloc *alloc)
{
	struct sim_call call;
	struct sim_pin *pin;

	while ((pin = sim_pin_to_revoke(alloc))) {
		sim_add(SIM_live_armed_callbacks, -1);
		sim_add(SIM_callbacks_fired, 1);
		WRITE_ONCE(alloc->telling, true);
		if (pin->callback) {
			call = sim_enter(SIM_free_callback);
			pin->callback(pin->data);
			sim_leave(&call);
		}
		WRITE_ONCE(alloc->telling, false);

		sim_pin_release(pin, SIM_PIN_REVOKED);
	}
}

/*
 * A module has been unloaded. Callbacks into it must not be armed any more:
 * they are disarmed here, because the next free would jump to nowhere.
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
		    !within_module((unsigned long)pin->callback, mod))
			continue;
		sim_violation("unload_armed",
			      "%s was unloaded while the callback of page table %p was %s",
			      mod->name, object->piece[0],
			      pin->state == SIM_PIN_LIVE ? "armed" : "running");
		if (pin->state == SIM_PIN_LIVE)
			pin->callback = NULL;
		else
			running = true;
	}
	mutex_unlock(&sim_gpu.lock);

	/* Keep the module's text until its callback is out of it. */
	if (running) {
		sim_api_lock_always("a module's end", true);
		sim_api_unlock();
	}
}
