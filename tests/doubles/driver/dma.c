// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Makes and ends the DMA mappings that NVIDIA's nv-p2p.c requests. This file replaces
 * rm_p2p_dma_map_pages of the open driver, and its nv-dma.c.
 *
 * NVIDIA's code reads the page table before this file takes the API lock. A callback may run at
 * that time, and no client can prevent that. NVIDIA's code requests a DMA mapping for each 64 KiB.
 * With the knob "dma_contiguous", this file makes one mapping for each contiguous run.
 */
#include "driver.h"
#include "sim.h"

static_assert(offsetof(struct nvidia_p2p_dma_mapping, version) == 0);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, page_size_type) == 4);
static_assert(NVIDIA_P2P_DMA_MAPPING_VERSION == 0x00020003);

/* ---- map ------------------------------------------------------------------------ */

/* Returns how many pages, from this page on, are mapped at once. */
static u32 sim_run_pages(const struct sim_pin *pin, u32 page)
{
	phys_addr_t phys = sim_alloc_phys(pin->alloc, pin->first + page);
	u32 n = 1;

	while (sim_knob(dma_contiguous) && page + n < pin->entries &&
	       sim_alloc_phys(pin->alloc, pin->first + page + n) == phys + n * SIM_PAGE_SIZE)
		n++;
	return n;
}

/*
 * Maps a run of pages. RAM is mapped without regard to the topology and to the knob that bypasses
 * the IOMMU.
 */
static dma_addr_t sim_map_run(const struct sim_mapping *m, phys_addr_t phys, size_t size)
{
	struct device *dev = &m->peer->dev;

	if (m->ram)
		return dma_map_page(dev, pfn_to_page(PHYS_PFN(phys)), 0, size, DMA_BIDIRECTIONAL);
	return dma_map_resource(dev, phys, size, DMA_BIDIRECTIONAL, 0);
}

static void sim_unmap_run(struct sim_mapping *m)
{
	struct sim_run *run = &m->runs[m->undone++];
	struct device *dev = &m->peer->dev;

	if (m->ram)
		dma_unmap_page(dev, run->start, run->pages * SIM_PAGE_SIZE, DMA_BIDIRECTIONAL);
	else
		dma_unmap_resource(dev, run->start, run->pages * SIM_PAGE_SIZE,
				   DMA_BIDIRECTIONAL, 0);
}

static NV_STATUS sim_mapping_fill(struct sim_mapping *m, const struct sim_pin *pin, NvU64 *addresses)
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
				return NV_ERR_OPERATING_SYSTEM;
			m->runs[m->nruns++] = run;
		}
		for (i = 0; i < run.pages; i++)
			addresses[page++] = run.start + i * SIM_PAGE_SIZE;
	}
	return NV_OK;
}

static struct sim_mapping *sim_mapping_new(struct sim_pin *pin, struct pci_dev *peer)
{
	struct sim_mapping *m = kzalloc_obj(*m);

	if (!m)
		return NULL;
	sim_object_init(&m->object, true, NULL);
	INIT_LIST_HEAD(&m->on_pin);
	kref_get(&pin->object.ref);
	m->pin = pin;
	/* The reference keeps the device, because the pointer to it is a key. */
	m->peer = pci_dev_get(peer);
	m->ram = pin->alloc->coherent;
	m->runs = kvcalloc(pin->entries, sizeof(*m->runs), GFP_KERNEL);
	return m;
}

/* Undoes the rest of a mapping and frees it. NVIDIA's code must not use the mapping any more. */
void sim_mapping_gone(struct sim_mapping *m)
{
	while (m->undone < m->nruns)
		sim_unmap_run(m);
	pci_dev_put(m->peer);
	sim_pin_drop(m->pin);
	kvfree(m->runs);
}

/* Maps the pages of a live pin. The API lock is held. */
static NV_STATUS sim_map_locked(struct sim_pin *pin, struct pci_dev *peer, NvU64 *addresses,
				void **private)
{
	struct sim_mapping *m;
	NV_STATUS status;

	sim_object_check(&pin->object, "dma_map_pages");
	if (sim_knob(topology_denied) && !pin->alloc->coherent)
		return NV_ERR_NOT_SUPPORTED;
	m = sim_mapping_new(pin, peer);
	status = m && m->runs ? sim_mapping_fill(m, pin, addresses) : NV_ERR_NO_MEMORY;
	if (status != NV_OK) {
		sim_object_put(m ? &m->object : NULL);
		return status;
	}
	/* NVIDIA's code passes the private data back when it undoes the mapping. */
	*private = m->ram ? m : NULL;
	m->addresses = addresses;
	sim_object_own(&m->object, addresses);
	guard(mutex)(&sim_gpu.lock);
	list_add_tail(&m->object.node, &sim_gpu.live);
	list_add_tail(&m->on_pin, &pin->mappings);
	return NV_OK;
}

/* Returns the pin whose table has this UUID, with a reference, or NULL. */
static struct sim_pin *sim_pin_of_uuid(const NvU8 *uuid)
{
	struct sim_object *object;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry(object, &sim_gpu.live, node) {
		if (object->mapping || object->made.table.gpu_uuid != uuid)
			continue;
		kref_get(&object->ref);
		return container_of(object, struct sim_pin, object);
	}
	return NULL;
}

NV_STATUS rm_p2p_dma_map_pages(nvidia_stack_t *stack, nv_dma_device_t *peer, NvU8 *uuid,
			       NvU64 page_size, NvU32 entries, NvU64 *addresses, void **private)
{
	NV_STATUS status = sim_status(sim_fail(SIM_dma_map_pages));
	struct sim_pin *pin;

	*private = NULL;
	if (status != NV_OK)
		return status;
	pin = sim_pin_of_uuid(uuid);
	sim_inject_pin(SIM_in_dma_map, pin);
	/* Lockdep does not watch the lock for persistent pins. apilock.c says why. */
	status = sim_rm_lock("dma_map_pages", !pin || !pin->persistent);
	if (status == NV_OK) {
		if (pin && sim_pin_alive(pin)) {
			status = sim_map_locked(pin, to_pci_dev(peer->dev), addresses, private);
		} else {
			sim_violation("race_dma_map",
				      "a page table was revoked while dma_map_pages was reading it");
			status = NV_ERR_GENERIC;
		}
		sim_api_unlock();
	}
	sim_pin_drop(pin);
	return status;
}

/* Completes a mapping. The structure that NVIDIA's code has made becomes its key. */
void sim_mapping_complete(struct sim_pin *pin, struct nvidia_p2p_dma_mapping *map)
{
	struct sim_mapping *m;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry(m, &pin->mappings, on_pin) {
		if (m->addresses != map->dma_addresses)
			continue;
		m->object.key = map;
		sim_object_adopt(&m->object, map);
		sim_object_seal(&m->object);
		m->live = true;
		sim_add(SIM_live_dma_mappings, 1);
		return;
	}
}

/* ---- unmap ---------------------------------------------------------------------- */

/*
 * Ends a mapping. Returns whether NVIDIA's code still has to give the mapping back, which it then
 * does next.
 */
bool sim_mapping_end(struct sim_mapping *m)
{
	bool mine;

	mutex_lock(&sim_gpu.lock);
	mine = m->live;
	m->live = false;
	list_del_init(&m->on_pin);
	mutex_unlock(&sim_gpu.lock);
	if (mine) {
		sim_object_hand_back(&m->object, "its end");
		sim_add(SIM_live_dma_mappings, -1);
	}
	return mine;
}

/* Ends all mappings of a pin, when the pin ends. */
void sim_mapping_end_all(struct sim_pin *pin)
{
	struct sim_mapping *m;

	for (;;) {
		mutex_lock(&sim_gpu.lock);
		m = list_first_entry_or_null(&pin->mappings, struct sim_mapping, on_pin);
		mutex_unlock(&sim_gpu.lock);
		if (!m)
			return;
		sim_mapping_end(m);
	}
}

/* Undoes a mapping of RAM. */
NV_STATUS nv_dma_unmap_alloc(nv_dma_device_t *peer, NvU64 pages, NvU64 *addresses, void **private)
{
	struct sim_mapping *m = *private;

	while (m->undone < m->nruns)
		sim_unmap_run(m);
	*private = NULL;
	return NV_OK;
}

/*
 * Takes the next run out of a mapping that is being given back, and returns true, if the run begins
 * at this address. Returns false if the address is in a run that was given back before, or is an
 * address on the bus. If devices use physical addresses, several mappings may have the same run.
 * Any of them may then be taken.
 */
static bool sim_take_run(const struct device *dev, dma_addr_t address, struct sim_run *run)
{
	struct sim_object *object;
	struct sim_mapping *m;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry(object, &sim_gpu.live, node) {
		m = container_of(object, struct sim_mapping, object);
		if (!object->mapping || m->live || m->ram || &m->peer->dev != dev ||
		    m->undone == m->nruns || m->runs[m->undone].start != address)
			continue;
		*run = m->runs[m->undone++];
		return true;
	}
	return false;
}

void nv_dma_unmap_peer(nv_dma_device_t *peer, NvU64 pages, NvU64 address)
{
	struct sim_run run;

	if (sim_take_run(peer->dev, address, &run))
		dma_unmap_resource(peer->dev, run.start, run.pages * SIM_PAGE_SIZE,
				   DMA_BIDIRECTIONAL, 0);
}
