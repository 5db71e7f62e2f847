// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page tables and DMA mappings: what get_pages and dma_map_pages hand out, and
 * what becomes of it.
 *
 * In the real driver both belong to the driver. put_pages frees the table and
 * every DMA mapping made from it; so does the driver on its own as soon as the
 * free callback of a table has returned. A table is a structure, an array, and
 * one slab object for each 64 KiB page.
 *
 * Here nothing of that goes back to the allocator at once. It is filled with
 * 0x6b and kept in a quarantine, oldest out first, for as long as the knob
 * "quarantine_max" allows: a client that reads a table after its end finds a
 * version of 0x6b6b6b6b, one that writes is found out when the table leaves the
 * quarantine, and one that hands it back to the driver is told what it was.
 * With quarantine_max at 0 memory is freed at once, for KASAN to watch, and
 * for addresses to be used again.
 *
 * What a client sees is summed up when it is made, and checked at each call
 * that names it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "sim.h"

/* ---- the end of the quarantine ----------------------------------------- */

static bool sim_intact(const void *p, size_t size)
{
	return !p || !memchr_inv(p, SIM_POISON, size);
}

static void sim_poison(void *p, size_t size)
{
	if (p)
		memset(p, SIM_POISON, size);
}

static void sim_pin_destroy(struct kref *ref)
{
	struct sim_pin *pin = container_of(ref, struct sim_pin, ref);
	u32 i;

	if (pin->objects)
		for (i = 0; i < pin->entries; i++)
			kfree(pin->objects[i]);
	kvfree(pin->objects);
	kvfree(pin->pages);
	kfree(pin->uuid);
	if (!pin->lent)
		kfree(pin->table);
	kfree(pin);
}

void sim_pin_drop(struct sim_pin *pin)
{
	if (pin)
		kref_put(&pin->ref, sim_pin_destroy);
}

static void sim_mapping_destroy(struct kref *ref)
{
	struct sim_mapping *m = container_of(ref, struct sim_mapping, ref);

	sim_pin_drop(m->pin);
	kvfree(m->runs);
	kvfree(m->addresses);
	kfree(m->map);
	kfree(m);
}

void sim_mapping_drop(struct sim_mapping *m)
{
	if (m)
		kref_put(&m->ref, sim_mapping_destroy);
}

static void sim_pin_inspect(const struct sim_pin *pin)
{
	bool intact = (pin->lent ||
		       sim_intact(pin->table, sizeof(*pin->table))) &&
		      sim_intact(pin->uuid, SIM_UUID_LEN) &&
		      sim_intact(pin->pages, pin->entries * sizeof(void *));
	u32 i;

	for (i = 0; intact && i < pin->entries; i++)
		intact = sim_intact(pin->objects[i], sizeof(**pin->objects));
	if (!intact)
		sim_violation(SIM_BAD_WRITE_AFTER_FREE,
			      "page table %p was written to after it had been freed",
			      pin->table);
}

static void sim_mapping_inspect(const struct sim_mapping *m)
{
	if (!sim_intact(m->map, sizeof(*m->map)) ||
	    !sim_intact(m->addresses, m->entries * sizeof(u64)))
		sim_violation(SIM_BAD_WRITE_AFTER_FREE,
			      "DMA mapping %p was written to after it had been freed",
			      m->map);
}

/* Let go of what is more than @max. gpu->lock is held. */
static void sim_evict(struct sim_gpu *gpu, u32 max)
{
	struct sim_mapping *m;
	struct sim_pin *pin;

	while (gpu->ndead_mappings > max) {
		m = list_first_entry(&gpu->dead_mappings, struct sim_mapping,
				     node);
		list_del_init(&m->node);
		gpu->ndead_mappings--;
		gpu->evicted = true;
		sim_mapping_inspect(m);
		sim_mapping_drop(m);
	}
	while (gpu->ndead_pins > max) {
		pin = list_first_entry(&gpu->dead_pins, struct sim_pin, node);
		list_del_init(&pin->node);
		gpu->ndead_pins--;
		gpu->evicted = true;
		sim_pin_inspect(pin);
		sim_pin_drop(pin);
	}
}

void sim_quarantine_drain(struct sim_gpu *gpu)
{
	mutex_lock(&gpu->lock);
	sim_evict(gpu, 0);
	mutex_unlock(&gpu->lock);
}

/* ---- page tables ------------------------------------------------------- */

/*
 * The table that this process got rid of last, as the kernel's allocator might
 * give it out: an address is a key, and this is how a key gets a new meaning.
 */
static bool sim_pin_reuse(struct sim_pin *pin)
{
	struct sim_gpu *gpu = pin->gpu;
	struct sim_pin *dead;

	if (!READ_ONCE(sim_knobs.reuse))
		return false;
	mutex_lock(&gpu->lock);
	list_for_each_entry_reverse(dead, &gpu->dead_pins, node) {
		if (dead->lent || dead->tgid != pin->tgid)
			continue;
		if (!sim_intact(dead->table, sizeof(*dead->table)))
			sim_violation(SIM_BAD_WRITE_AFTER_FREE,
				      "page table %p was written to after it had been freed",
				      dead->table);
		dead->lent = true;
		pin->reused = true;
		pin->table = dead->table;
		memset(pin->table, 0, sizeof(*pin->table));
		break;
	}
	mutex_unlock(&gpu->lock);
	return pin->reused;
}

/* The structure alone: its address is known to the client before the rest is. */
struct sim_pin *sim_pin_new(struct sim_gpu *gpu)
{
	struct sim_pin *pin = kzalloc_obj(*pin);

	if (!pin)
		return NULL;
	kref_init(&pin->ref);
	INIT_LIST_HEAD(&pin->node);
	INIT_LIST_HEAD(&pin->on_alloc);
	INIT_LIST_HEAD(&pin->mappings);
	pin->gpu = gpu;
	pin->tgid = task_tgid_nr(current);
	if (!sim_pin_reuse(pin))
		/* With room for flags: it may be made to claim a version that has them. */
		pin->table = kzalloc(sizeof(*pin->table) + sizeof(u64), GFP_KERNEL);
	if (!pin->table) {
		sim_pin_drop(pin);
		return NULL;
	}
	return pin;
}

static u32 sim_pin_hash(const struct sim_pin *pin)
{
	u32 i, hash = jhash(pin->table, sizeof(*pin->table), 0);

	hash = jhash(pin->uuid, SIM_UUID_LEN, hash);
	hash = jhash(pin->pages, pin->entries * sizeof(void *), hash);
	for (i = 0; i < pin->entries; i++)
		hash = jhash(pin->objects[i], sizeof(**pin->objects), hash);
	return hash | 1;
}

/* Fill the table with the pages at pin->first of pin->alloc. */
int sim_pin_fill(struct sim_pin *pin)
{
	struct nvidia_p2p_page_table *table = pin->table;
	u32 version = READ_ONCE(sim_knobs.page_table_version);
	u32 n = pin->entries;
	u32 i;

	pin->uuid = kmalloc(SIM_UUID_LEN, GFP_KERNEL);
	pin->pages = kvcalloc(n, sizeof(*pin->pages), GFP_KERNEL);
	pin->objects = kvcalloc(n, sizeof(*pin->objects), GFP_KERNEL);
	if (!pin->uuid || !pin->pages || !pin->objects)
		return -ENOMEM;
	for (i = 0; i < SIM_UUID_LEN; i++)
		pin->uuid[i] = 0xa0 + i;

	for (i = 0; i < n; i++) {
		pin->objects[i] = kzalloc_obj(**pin->objects);
		if (!pin->objects[i])
			return -ENOMEM;
		pin->objects[i]->physical_address =
			sim_alloc_phys(pin->alloc, pin->first + i);
		pin->pages[i] = pin->objects[i];
	}

	table->version = version ? version : NVIDIA_P2P_PAGE_TABLE_VERSION;
	table->page_size = READ_ONCE(sim_knobs.page_size);
	table->pages = pin->pages;
	table->entries = n;
	table->gpu_uuid = pin->uuid;
#ifdef NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE
	if (pin->alloc->coherent)
		table->flags = NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE;
#endif
	if (READ_ONCE(sim_knobs.verify))
		pin->hash = sim_pin_hash(pin);
	return 0;
}

/* From here on others know of it, and a free revokes it. gpu->lock is held. */
void sim_pin_publish(struct sim_pin *pin)
{
	struct sim_gpu *gpu = pin->gpu;

	lockdep_assert_held(&gpu->lock);
	pin->state = SIM_PIN_LIVE;
	list_add_tail(&pin->node, &gpu->pins);
	if (pin->persistent) {
		sim_add(SIM_LIVE_PERSISTENT_PINS, 1);
		return;
	}
	list_add_tail(&pin->on_alloc, &pin->alloc->pins);
	pin->alloc->npins++;
	sim_add(SIM_LIVE_PINS, 1);
	sim_add(SIM_LIVE_ARMED_CALLBACKS, 1);
}

/* A reference to what goes, or went, by this address. */
struct sim_pin *sim_pin_find(struct sim_gpu *gpu, const void *table)
{
	struct sim_pin *pin;

	mutex_lock(&gpu->lock);
	list_for_each_entry(pin, &gpu->pins, node)
		if (pin->table == table)
			goto found;
	/* The last one that had this address. */
	list_for_each_entry_reverse(pin, &gpu->dead_pins, node)
		if (pin->table == table)
			goto found;
	mutex_unlock(&gpu->lock);
	return NULL;
found:
	kref_get(&pin->ref);
	mutex_unlock(&gpu->lock);
	return pin;
}

bool sim_pin_alive(const struct sim_pin *pin)
{
	enum sim_pin_state state = READ_ONCE(pin->state);

	return state == SIM_PIN_LIVE || state == SIM_PIN_REVOKING;
}

/* The allocation of a live pin, with a reference, or NULL. */
struct sim_alloc *sim_pin_alloc(struct sim_pin *pin)
{
	struct sim_alloc *alloc;

	if (!pin)
		return NULL;
	mutex_lock(&pin->gpu->lock);
	alloc = pin->alloc;
	if (alloc)
		sim_alloc_get(alloc);
	mutex_unlock(&pin->gpu->lock);
	return alloc;
}

/* Say what is wrong with a pointer that should have been a live table. */
void sim_accuse_table(const char *what, const void *table,
			     const struct sim_pin *pin, void *caller)
{
	if (pin)
		sim_violation(SIM_BAD_TABLE_DEAD,
			      "%s of page table %p after it was %s, from %pS",
			      what, table,
			      pin->state == SIM_PIN_PUT ? "put" : "revoked",
			      caller);
	else if (table == SIM_DANGLING)
		sim_violation(SIM_BAD_TABLE_UNKNOWN,
			      "%s of what a failed get_pages left behind, from %pS",
			      what, caller);
	else
		sim_violation(SIM_BAD_TABLE_UNKNOWN,
			      "%s of %p, which is no page table, from %pS",
			      what, table, caller);
}

/* The API lock is held: nobody poisons the table meanwhile. */
void sim_pin_check(struct sim_pin *pin, const char *where)
{
	if (!pin->hash || pin->hash == sim_pin_hash(pin))
		return;
	sim_violation(SIM_BAD_TABLE_MODIFIED,
		      "page table %p has been changed by its client, seen in %s",
		      pin->table, where);
	pin->hash = 0;
}

static struct sim_mapping *sim_pin_next_mapping(struct sim_pin *pin)
{
	struct sim_mapping *m;

	mutex_lock(&pin->gpu->lock);
	m = list_first_entry_or_null(&pin->mappings, struct sim_mapping,
				     on_pin);
	if (m) {
		m->live = false;
		list_del_init(&m->on_pin);
	}
	mutex_unlock(&pin->gpu->lock);
	return m;
}

/*
 * The end of a pin, by put or by revocation. The API lock is held and the
 * callback is not armed any more; the caller holds the allocation.
 */
void sim_pin_release(struct sim_pin *pin, enum sim_pin_state how)
{
	struct sim_gpu *gpu = pin->gpu;
	struct sim_alloc *alloc = pin->alloc;
	struct sim_mapping *m;
	u32 i;

	sim_pin_check(pin, how == SIM_PIN_PUT ? "put" : "the free callback");

	mutex_lock(&gpu->lock);
	WRITE_ONCE(pin->state, how);
	pin->alloc = NULL;
	mutex_unlock(&gpu->lock);

	while ((m = sim_pin_next_mapping(pin)))
		sim_mapping_release(m);

	for (i = 0; i < pin->entries; i++)
		sim_poison(pin->objects[i], sizeof(**pin->objects));
	sim_poison(pin->pages, pin->entries * sizeof(void *));
	sim_poison(pin->uuid, SIM_UUID_LEN);
	sim_poison(pin->table, sizeof(*pin->table));

	mutex_lock(&gpu->lock);
	sim_bar1_unmap(alloc, pin->first, pin->entries);
	if (pin->persistent)
		alloc->npersistent--;
	else
		alloc->npins--;
	sim_add(pin->persistent ? SIM_LIVE_PERSISTENT_PINS : SIM_LIVE_PINS, -1);
	list_move_tail(&pin->node, &gpu->dead_pins);
	gpu->ndead_pins++;
	sim_evict(gpu, READ_ONCE(sim_knobs.quarantine_max));
	mutex_unlock(&gpu->lock);
	sim_alloc_put(alloc);
}

/*
 * Tell every client that its pages are going, one after another, and take its
 * table away as soon as its callback has returned. The API lock is held.
 */
void sim_pin_revoke_all(struct sim_alloc *alloc)
{
	struct sim_gpu *gpu = alloc->gpu;
	void (*callback)(void *data);
	struct sim_pin *pin;

	for (;;) {
		mutex_lock(&gpu->lock);
		pin = list_first_entry_or_null(&alloc->pins, struct sim_pin,
					       on_alloc);
		if (pin) {
			list_del_init(&pin->on_alloc);
			WRITE_ONCE(pin->state, SIM_PIN_REVOKING);
			callback = pin->callback;
		}
		mutex_unlock(&gpu->lock);
		if (!pin)
			break;

		sim_add(SIM_LIVE_ARMED_CALLBACKS, -1);
		sim_add(SIM_CALLBACKS_FIRED, 1);
		sim_add(SIM_LIVE_CALLBACKS_RUNNING, 1);
		WRITE_ONCE(alloc->telling, true);
		if (callback) {
			struct sim_call call = sim_clock_start(SIM_FREE_CALLBACK);

			callback(pin->data);
			sim_clock_stop(&call);
		}
		WRITE_ONCE(alloc->telling, false);
		sim_add(SIM_LIVE_CALLBACKS_RUNNING, -1);

		sim_pin_release(pin, SIM_PIN_REVOKED);
	}
}

/*
 * A module has been unloaded. Callbacks into it must not be armed any more:
 * they are disarmed here, because the next free would jump to nowhere.
 */
void sim_pin_module_gone(struct sim_gpu *gpu, const struct module *mod)
{
	bool running = false;
	struct sim_pin *pin;

	mutex_lock(&gpu->lock);
	list_for_each_entry(pin, &gpu->pins, node) {
		if (!within_module((unsigned long)(pin->persistent ?
						   pin->caller : pin->callback),
				   mod) || !sim_pin_alive(pin))
			continue;
		if (pin->persistent) {
			sim_violation(SIM_BAD_UNLOAD_PINNED,
				      "%s was unloaded without putting persistent page table %p",
				      mod->name, pin->table);
			continue;
		}
		sim_violation(SIM_BAD_UNLOAD_ARMED,
			      "%s was unloaded while the callback of page table %p was %s",
			      mod->name, pin->table,
			      pin->state == SIM_PIN_LIVE ? "armed" : "running");
		if (pin->state == SIM_PIN_LIVE)
			pin->callback = NULL;
		else
			running = true;
	}
	mutex_unlock(&gpu->lock);

	/* Keep the module's text until its callback is out of it. */
	if (running) {
		sim_api_lock_always("a module's end", true);
		sim_api_unlock();
	}
}

/* ---- DMA mappings ------------------------------------------------------ */

static u32 sim_mapping_hash(const struct sim_mapping *m)
{
	u32 hash = jhash(m->map, sizeof(*m->map), 0);

	return jhash(m->addresses, m->entries * sizeof(u64), hash) | 1;
}

static void sim_mapping_undo(struct sim_mapping *m)
{
	while (m->nruns--) {
		if (m->coherent)
			sim_coherent_unmap(&m->peer->dev, m->runs[m->nruns].start);
		else
			dma_unmap_resource(&m->peer->dev, m->runs[m->nruns].start,
					   m->runs[m->nruns].pages * SIM_PAGE_SIZE,
					   DMA_BIDIRECTIONAL, 0);
	}
	/* The pointer itself stays, as a key. */
	pci_dev_put(m->peer);
}

/* How many pages from this one on are mapped at once. */
static u32 sim_run_pages(const struct sim_pin *pin, u32 page)
{
	phys_addr_t phys = sim_alloc_phys(pin->alloc, pin->first + page);
	u32 n = 1;

	if (!READ_ONCE(sim_knobs.dma_contiguous))
		return 1;
	while (page + n < pin->entries &&
	       sim_alloc_phys(pin->alloc, pin->first + page + n) ==
	       phys + n * SIM_PAGE_SIZE)
		n++;
	return n;
}

/* RAM: neither topology nor the way past the IOMMU is asked about. */
static int sim_mapping_fill_coherent(struct sim_mapping *m, const struct sim_pin *pin)
{
	struct device *dev = &m->peer->dev;

	for (; m->nruns < pin->entries; m->nruns++) {
		struct sim_run *run = &m->runs[m->nruns];

		run->pages = 1;
		run->start = sim_coherent_map(dev, pin->alloc, pin->first + m->nruns);
		if (dma_mapping_error(dev, run->start))
			return -EIO;
		m->addresses[m->nruns] = run->start;
	}
	return 0;
}

static int sim_mapping_fill(struct sim_mapping *m, const struct sim_pin *pin)
{
	struct device *dev = &m->peer->dev;
	u32 i, page = 0;

	if (m->coherent)
		return sim_mapping_fill_coherent(m, pin);
	if (!READ_ONCE(sim_knobs.remap_peer_mmio)) {
		for (; page < pin->entries; page++)
			m->addresses[page] = sim_alloc_phys(pin->alloc, pin->first + page) +
					     READ_ONCE(sim_knobs.bus_offset);
		return 0;
	}
	while (page < pin->entries) {
		struct sim_run *run = &m->runs[m->nruns];

		run->pages = sim_run_pages(pin, page);
		run->start = dma_map_resource(dev,
					      sim_alloc_phys(pin->alloc,
							     pin->first + page),
					      run->pages * SIM_PAGE_SIZE,
					      DMA_BIDIRECTIONAL, 0);
		if (dma_mapping_error(dev, run->start))
			return -EIO;
		m->nruns++;
		for (i = 0; i < run->pages; i++)
			m->addresses[page++] = run->start + i * SIM_PAGE_SIZE;
	}
	return 0;
}

/* The API lock is held, the pin live. */
int sim_mapping_new(struct sim_pin *pin, struct pci_dev *peer,
		    struct sim_mapping **out)
{
	u32 version = READ_ONCE(sim_knobs.dma_mapping_version);
	u32 n = pin->entries;
	struct sim_gpu *gpu = pin->gpu;
	struct sim_mapping *m = kzalloc_obj(*m);
	int ret;

	if (!m)
		return -ENOMEM;
	if (READ_ONCE(sim_knobs.topology_denied) && !pin->alloc->coherent) {
		kfree(m);
		return -ENOTSUPP;
	}
	kref_init(&m->ref);
	INIT_LIST_HEAD(&m->node);
	INIT_LIST_HEAD(&m->on_pin);
	m->map = kzalloc_obj(*m->map);
	m->runs = kvcalloc(n, sizeof(*m->runs), GFP_KERNEL);
	m->addresses = kvcalloc(n, sizeof(*m->addresses), GFP_KERNEL);
	if (!m->map || !m->runs || !m->addresses) {
		sim_mapping_drop(m);
		return -ENOMEM;
	}
	m->peer = pci_dev_get(peer);
	m->coherent = pin->alloc->coherent;
	m->entries = n;

	ret = sim_mapping_fill(m, pin);
	if (ret) {
		sim_mapping_undo(m);
		sim_mapping_drop(m);
		return ret;
	}

	m->map->version = version ? version : NVIDIA_P2P_DMA_MAPPING_VERSION;
	m->map->page_size_type = pin->table->page_size;
	m->map->entries = n;
	if (READ_ONCE(sim_knobs.dma_entries_short))
		m->map->entries--;
	m->map->dma_addresses = m->addresses;
	m->map->pci_dev = peer;
	if (READ_ONCE(sim_knobs.verify))
		m->hash = sim_mapping_hash(m);

	mutex_lock(&gpu->lock);
	kref_get(&pin->ref);
	m->pin = pin;
	m->live = true;
	list_add_tail(&m->node, &gpu->mappings);
	list_add_tail(&m->on_pin, &pin->mappings);
	*out = m;
	mutex_unlock(&gpu->lock);
	sim_add(SIM_LIVE_DMA_MAPPINGS, 1);
	sim_add(SIM_LIVE_DMA_PAGES, n);
	return 0;
}

/* A reference to what goes, or went, by this address. */
struct sim_mapping *sim_mapping_find(struct sim_gpu *gpu, const void *map)
{
	struct sim_mapping *m;

	mutex_lock(&gpu->lock);
	list_for_each_entry(m, &gpu->mappings, node)
		if (m->map == map)
			goto found;
	list_for_each_entry(m, &gpu->dead_mappings, node)
		if (m->map == map)
			goto found;
	mutex_unlock(&gpu->lock);
	return NULL;
found:
	kref_get(&m->ref);
	mutex_unlock(&gpu->lock);
	return m;
}

/* Whoever gets true here has to release it. */
bool sim_mapping_unlink(struct sim_mapping *m)
{
	struct sim_gpu *gpu = m->pin->gpu;
	bool mine;

	mutex_lock(&gpu->lock);
	mine = m->live;
	m->live = false;
	list_del_init(&m->on_pin);
	mutex_unlock(&gpu->lock);
	return mine;
}

void sim_mapping_release(struct sim_mapping *m)
{
	struct sim_gpu *gpu = m->pin->gpu;

	if (m->hash && m->hash != sim_mapping_hash(m))
		sim_violation(SIM_BAD_MAPPING_MODIFIED,
			      "DMA mapping %p has been changed by its client",
			      m->map);
	sim_mapping_undo(m);
	sim_poison(m->addresses, m->entries * sizeof(u64));
	sim_poison(m->map, sizeof(*m->map));
	sim_add(SIM_LIVE_DMA_MAPPINGS, -1);
	sim_add(SIM_LIVE_DMA_PAGES, -(s64)m->entries);

	mutex_lock(&gpu->lock);
	list_move_tail(&m->node, &gpu->dead_mappings);
	gpu->ndead_mappings++;
	sim_evict(gpu, READ_ONCE(sim_knobs.quarantine_max));
	mutex_unlock(&gpu->lock);
}
