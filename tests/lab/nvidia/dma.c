// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * nvidia_p2p_dma_map_pages and nvidia_p2p_dma_unmap_pages.
 *
 * dma_map_pages reads the table before it has any lock: it cannot be made safe
 * against the callback. It makes one DMA mapping for each 64 KiB, or for each
 * contiguous run of them with the knob "dma_contiguous".
 *
 * dma_unmap_pages needs no API lock. A mapping that has gone already is not
 * missed, as long as its table lives.
 */
#include <linux/export.h>

#include "sim.h"

static_assert(offsetof(struct nvidia_p2p_dma_mapping, version) == 0);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, page_size_type) == 4);
static_assert(NVIDIA_P2P_DMA_MAPPING_VERSION == 0x00020003);

/* ---- mappings ----------------------------------------------------------- */

/* How many pages from this one on are mapped at once. */
static u32 sim_run_pages(const struct sim_pin *pin, u32 page)
{
	phys_addr_t phys = sim_alloc_phys(pin->alloc, pin->first + page);
	u32 n = 1;

	while (sim_knob(dma_contiguous) && page + n < pin->entries &&
	       sim_alloc_phys(pin->alloc, pin->first + page + n) == phys + n * SIM_PAGE_SIZE)
		n++;
	return n;
}

/* RAM: neither topology nor the way past the IOMMU is asked about. */
static dma_addr_t sim_map_run(const struct sim_mapping *m, phys_addr_t phys, size_t size)
{
	struct device *dev = &m->peer->dev;

	if (m->ram)
		return dma_map_page(dev, pfn_to_page(PHYS_PFN(phys)), 0, size, DMA_BIDIRECTIONAL);
	return dma_map_resource(dev, phys, size, DMA_BIDIRECTIONAL, 0);
}

static int sim_mapping_fill(struct sim_mapping *m, const struct sim_pin *pin, u64 *addresses)
{
	bool on_bus = !m->ram && !sim_knob(remap_peer_mmio);
	struct sim_run run;
	phys_addr_t phys;
	u32 i, page = 0;

	while (page < pin->entries) {
		phys = sim_alloc_phys(pin->alloc, pin->first + page);
		run.pages = sim_run_pages(pin, page);
		run.start = phys + sim_knob(bus_offset);
		if (!on_bus) {
			run.start = sim_map_run(m, phys, run.pages * SIM_PAGE_SIZE);
			if (dma_mapping_error(&m->peer->dev, run.start))
				return -EIO;
			m->runs[m->nruns++] = run;
		}
		for (i = 0; i < run.pages; i++)
			addresses[page++] = run.start + i * SIM_PAGE_SIZE;
	}
	return 0;
}

static void sim_mapping_undo(struct sim_mapping *m)
{
	struct sim_run *run;

	while (m->nruns--) {
		run = &m->runs[m->nruns];
		if (m->ram)
			dma_unmap_page(&m->peer->dev, run->start, run->pages * SIM_PAGE_SIZE,
				       DMA_BIDIRECTIONAL);
		else
			dma_unmap_resource(&m->peer->dev, run->start, run->pages * SIM_PAGE_SIZE,
					   DMA_BIDIRECTIONAL, 0);
	}
	/* The pointer itself stays, as a key. */
	pci_dev_put(m->peer);
}

/* The API lock is held, the pin live. */
static int sim_mapping_new(struct sim_pin *pin, struct pci_dev *peer,
			   struct nvidia_p2p_dma_mapping **out)
{
	const struct nvidia_p2p_page_table *table = pin->object.piece[0];
	u32 n = pin->entries;
	struct nvidia_p2p_dma_mapping *map;
	struct sim_mapping *m;
	int ret;

	if (sim_knob(topology_denied) && !pin->alloc->coherent)
		return -ENOTSUPP;
	m = kzalloc_obj(*m);
	if (!m)
		return -ENOMEM;
	sim_object_init(&m->object, true);
	INIT_LIST_HEAD(&m->on_pin);
	m->peer = pci_dev_get(peer);
	m->ram = pin->alloc->coherent;
	m->object.size[0] = sizeof(*map);
	m->object.size[1] = n * sizeof(u64);
	m->runs = kvcalloc(n, sizeof(*m->runs), GFP_KERNEL);
	m->object.piece[0] = kzalloc(m->object.size[0], GFP_KERNEL);
	m->object.piece[1] = kvzalloc(m->object.size[1], GFP_KERNEL);
	ret = m->runs && m->object.piece[0] && m->object.piece[1] ?
	      sim_mapping_fill(m, pin, m->object.piece[1]) : -ENOMEM;
	if (ret) {
		sim_mapping_undo(m);
		sim_object_put(&m->object);
		return ret;
	}

	map = m->object.piece[0];
	map->version = sim_knob(dma_mapping_version);
	map->page_size_type = table->page_size;
	map->entries = n - sim_knob(dma_entries_short);
	map->dma_addresses = m->object.piece[1];
	map->pci_dev = peer;
	sim_object_seal(&m->object);
	sim_add(SIM_live_dma_mappings, 1);

	guard(mutex)(&sim_gpu.lock);
	kref_get(&pin->object.ref);
	m->pin = pin;
	m->live = true;
	list_add_tail(&m->object.node, &sim_gpu.live);
	list_add_tail(&m->on_pin, &pin->mappings);
	*out = map;
	return 0;
}

/* Whoever gets true here has to release it. */
static bool sim_mapping_unlink(struct sim_mapping *m)
{
	bool mine;

	guard(mutex)(&sim_gpu.lock);
	mine = m->live;
	m->live = false;
	list_del_init(&m->on_pin);
	return mine;
}

static void sim_mapping_release(struct sim_mapping *m)
{
	sim_object_check(&m->object, "its end");
	sim_mapping_undo(m);
	sim_add(SIM_live_dma_mappings, -1);
	sim_object_bury(&m->object);
}

/* With its pin. */
void sim_mapping_end_all(struct sim_pin *pin)
{
	struct sim_mapping *m;

	for (;;) {
		mutex_lock(&sim_gpu.lock);
		m = list_first_entry_or_null(&pin->mappings, struct sim_mapping, on_pin);
		if (m) {
			m->live = false;
			list_del_init(&m->on_pin);
		}
		mutex_unlock(&sim_gpu.lock);
		if (!m)
			return;
		sim_mapping_release(m);
	}
}

/* ---- the exports ---------------------------------------------------------- */

/* Which may be a pointer to no device at all: it is not followed. */
static bool sim_is_pci(const struct pci_dev *peer)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev) {
		if (pdev == peer) {
			pci_dev_put(pdev);
			return true;
		}
	}
	return false;
}

/* The pin was alive; the API lock is held. */
static int sim_map_locked(struct sim_pin *pin, struct pci_dev *peer,
			  struct nvidia_p2p_dma_mapping **dma_mapping)
{
	struct nvidia_p2p_page_table *table = pin->object.piece[0];

	if (!sim_pin_alive(pin)) {
		sim_violation("race_dma_map",
			      "page table %p was revoked while dma_map_pages was reading it",
			      table);
		return -EIO;
	}
	if (table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB &&
	    table->page_size != NVIDIA_P2P_PAGE_SIZE_128KB) {
		sim_violation("page_size",
			      "dma_map_pages of page table %p, whose page size is %u: the real driver stops the kernel",
			      table, table->page_size);
		return -EINVAL;
	}
	sim_object_check(&pin->object, "dma_map_pages");
	return sim_mapping_new(pin, peer, dma_mapping);
}

int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping)
{
	struct sim_pin *pin;
	int ret;

	CLASS(sim_call, call)(SIM_dma_map_pages);
	if (!sim_is_pci(peer)) {
		sim_violation("bad_peer", "dma_map_pages for %p, which is no PCI device", peer);
		return -EINVAL;
	}

	/* Here the real driver reads the table, holding nothing. */
	pin = sim_pin_find(page_table);
	if (!pin || !sim_pin_alive(pin)) {
		sim_accuse_table("dma_map_pages", page_table, pin);
		sim_pin_drop(pin);
		return -EINVAL;
	}

	*dma_mapping = NULL;
	ret = sim_fail(SIM_dma_map_pages);
	if (!ret) {
		sim_inject_pin(SIM_in_dma_map, pin);
		/* Persistent ones are not in lockdep's order: see apilock.c. */
		ret = sim_api_lock("dma_map_pages", !pin->persistent);
	}
	if (!ret) {
		ret = sim_map_locked(pin, peer, dma_mapping);
		sim_api_unlock();
	}
	if (!ret)
		sim_inject_pin(SIM_after_dma_map, pin);
	sim_pin_drop(pin);
	return ret;
}
SIM_EXPORT(nvidia_p2p_dma_map_pages);

/* Say what is wrong with the mapping that is to be undone. */
static int sim_check_unmap(const struct sim_mapping *m, const void *key,
			   const struct pci_dev *peer, const void *table)
{
	const char *what = "dma_unmap_pages of";

	if (!m)
		sim_violation("mapping_unknown", "%s %p, which is no DMA mapping", what, key);
	else if (!sim_pin_alive(m->pin))
		sim_violation("mapping_dead", "%s DMA mapping %p after its page table was %s", what,
			      key, m->pin->state == SIM_PIN_PUT ? "put" : "revoked");
	else if (m->pin->object.piece[0] != table || (READ_ONCE(m->live) && m->peer != peer))
		sim_violation("mapping_owner",
			      "%s DMA mapping %p of another page table or for another device", what,
			      key);
	else
		return 0;
	return -EINVAL;
}

int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping)
{
	struct sim_object *object;
	struct sim_mapping *m;
	int ret;

	CLASS(sim_call, call)(SIM_dma_unmap_pages);
	ret = sim_fail(SIM_dma_unmap_pages);
	if (ret)
		return ret;

	object = sim_object_find(dma_mapping, true);
	m = object ? container_of(object, struct sim_mapping, object) : NULL;
	ret = sim_check_unmap(m, dma_mapping, peer, page_table);
	if (!ret && READ_ONCE(m->live)) {
		sim_inject_pin(SIM_in_dma_unmap, m->pin);
		if (sim_mapping_unlink(m)) {
			sim_mapping_release(m);
			sim_inject_pin(SIM_after_dma_unmap, m->pin);
		} else if (!sim_pin_alive(m->pin)) {
			sim_violation("race_dma_unmap",
				      "DMA mapping %p was revoked while dma_unmap_pages was using it",
				      dma_mapping);
		}
	}
	sim_object_put(object);
	return ret;
}
SIM_EXPORT(nvidia_p2p_dma_unmap_pages);
