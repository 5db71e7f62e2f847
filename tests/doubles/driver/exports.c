// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions that the driver exports. They call NVIDIA's functions (driver.c), measure the time,
 * and cause the failures and frees that the test has requested. If a client makes a mistake that
 * would make the real driver crash, hang or use memory of others, these functions record a
 * violation and do not call NVIDIA's functions.
 */
#include <linux/export.h>

#include "sim.h"

typeof(nvidia_p2p_get_pages) driver_get_pages;
typeof(nvidia_p2p_put_pages) driver_put_pages;
typeof(nvidia_p2p_get_pages_persistent) driver_get_pages_persistent;
typeof(nvidia_p2p_put_pages_persistent) driver_put_pages_persistent;
typeof(nvidia_p2p_dma_map_pages) driver_dma_map_pages;
typeof(nvidia_p2p_dma_unmap_pages) driver_dma_unmap_pages;
typeof(nvidia_p2p_free_page_table) driver_free_page_table;
typeof(nvidia_p2p_free_dma_mapping) driver_free_dma_mapping;

/* ---- get ------------------------------------------------------------------------ */

/* Tells whether the driver refuses a range. Drivers before 555 check only the address. */
static bool sim_range_is_wrong(const char *what, u64 va, u64 length)
{
	if (length && IS_ALIGNED(va | length, SIM_PAGE_SIZE) && length >> SIM_PAGE_SHIFT <= U32_MAX)
		return false;
	sim_violation("bad_range", "%s of 0x%llx bytes at 0x%llx: not a range of 64 KiB pages",
		      what, length, va);
	return true;
}

static void sim_after_get(int ret, struct sim_alloc *alloc, bool persistent)
{
	if (!ret && persistent)
		sim_inject(SIM_before_get_returns, alloc);
	if (!ret)
		sim_inject(SIM_after_get, alloc);
	if (alloc)
		sim_alloc_put(alloc);
}

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	struct sim_alloc *alloc;
	int ret;

	CLASS(sim_call, call)(SIM_get_pages);
	if (sim_range_is_wrong("get_pages", virtual_address, length))
		return -EINVAL;
	alloc = sim_alloc_of(virtual_address);
	ret = driver_get_pages(p2p_token, va_space, virtual_address, length, page_table,
			       free_callback, data);
	sim_after_get(ret, alloc, false);
	return ret;
}
SIM_EXPORT(nvidia_p2p_get_pages);

int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags)
{
	struct sim_alloc *alloc;
	int ret;

	CLASS(sim_call, call)(SIM_get_pages_persistent);
	if (sim_range_is_wrong("get_pages_persistent", virtual_address, length))
		return -EINVAL;
#ifdef NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING
	/*
	 * Drivers from 570 on have this check, and ignore unknown bits. NVIDIA's code in driver.c
	 * is older and lacks the check.
	 */
	if (flags & NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING)
		return sim_refuse_bar1("get_pages_persistent", virtual_address, length);
	flags = 0;
#endif
	alloc = sim_alloc_of(virtual_address);
	ret = driver_get_pages_persistent(virtual_address, length, page_table, flags);
	if (!ret)
		sim_pin_complete_persistent(*page_table);
	sim_after_get(ret, alloc, true);
	return ret;
}
SIM_EXPORT(nvidia_p2p_get_pages_persistent);

/* ---- put ------------------------------------------------------------------------ */

/*
 * Makes the last step of a put, which injects a free if the test has asked for one. @alloc is the
 * allocation that was pinned when the call began, or NULL.
 */
static void sim_after_put(struct sim_pin *pin, struct sim_alloc *alloc)
{
	bool gone = alloc && READ_ONCE(pin->state) == SIM_PIN_PUT;
	u64 began = gone ? pin->began : 0;
	u32 pages = gone ? pin->entries : 0;

	/*
	 * This may free the memory of the pin. The time counts, because it is part of the cost of a
	 * page.
	 */
	sim_pin_drop(pin);
	sim_spend(began, SIM_PUT_PAGE, pages);
	sim_inject(SIM_after_put, gone ? alloc : NULL);
	if (alloc)
		sim_alloc_put(alloc);
}

int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct sim_alloc *alloc;
	struct sim_pin *pin;
	int ret;

	CLASS(sim_call, call)(SIM_put_pages);
	ret = page_table ? sim_fail(SIM_put_pages) : 0;
	if (ret)
		return ret;
	pin = sim_pin_find(page_table);
	alloc = sim_pin_alloc(pin);
	ret = driver_put_pages(p2p_token, va_space, virtual_address, page_table);
	sim_after_put(pin, alloc);
	return ret;
}
SIM_EXPORT(nvidia_p2p_put_pages);

/* Returns false if the table is wrong, because the real code would then read freed memory. */
static bool sim_may_put_persistent(const void *table, const struct sim_pin *pin, u64 va)
{
	const char *what = "put_pages_persistent of page table";

	if (!pin)
		sim_accuse_table("put_pages_persistent", table, NULL);
	else if (!pin->persistent)
		sim_violation("table_kind", "%s %p, which is not persistent", what, table);
	else if (!sim_pin_alive(pin))
		sim_violation("double_put", "%s %p for the second time", what, table);
	else if (va != pin->va)
		sim_violation("table_address", "%s %p with address 0x%llx, but it was got with 0x%llx",
			      what, table, va, pin->va);
	return pin && pin->persistent && sim_pin_alive(pin);
}

int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags)
{
	struct sim_alloc *alloc;
	struct sim_pin *pin;
	int ret;

	CLASS(sim_call, call)(SIM_put_pages_persistent);
	ret = page_table && !flags ? sim_fail(SIM_put_pages_persistent) : 0;
	if (ret)
		return ret;
	pin = sim_pin_find(page_table);
	if (page_table && !flags && !sim_may_put_persistent(page_table, pin, virtual_address)) {
		sim_pin_drop(pin);
		return -EINVAL;
	}
	alloc = sim_pin_alloc(pin);
	ret = driver_put_pages_persistent(virtual_address, page_table, flags);
	sim_after_put(pin, alloc);
	return ret;
}
SIM_EXPORT(nvidia_p2p_put_pages_persistent);

/* ---- DMA ------------------------------------------------------------------------ */

/* Tells whether a pointer points to a PCI device, without dereferencing the pointer. */
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

/*
 * Tells whether the real code can read the client's arguments. If it cannot, records a violation.
 */
static bool sim_may_map(const struct pci_dev *peer, const struct nvidia_p2p_page_table *table,
			const struct sim_pin *pin)
{
	if (!sim_is_pci(peer)) {
		sim_violation("bad_peer", "dma_map_pages for %p, which is no PCI device", peer);
		return false;
	}
	if (!pin || !sim_pin_alive(pin)) {
		sim_accuse_table("dma_map_pages", table, pin);
		return false;
	}
	if (table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB &&
	    table->page_size != NVIDIA_P2P_PAGE_SIZE_128KB) {
		sim_violation("page_size",
			      "dma_map_pages of page table %p, whose page size is %u: the real driver stops the kernel",
			      table, table->page_size);
		return false;
	}
	return true;
}

int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping)
{
	struct sim_pin *pin;
	int ret = -EINVAL;

	CLASS(sim_call, call)(SIM_dma_map_pages);
	pin = sim_pin_find(page_table);
	if (sim_may_map(peer, page_table, pin))
		ret = driver_dma_map_pages(peer, page_table, dma_mapping);
	if (!ret) {
		sim_mapping_complete(pin, *dma_mapping);
		sim_inject_pin(SIM_after_dma_map, pin);
	}
	sim_pin_drop(pin);
	return ret;
}
SIM_EXPORT(nvidia_p2p_dma_map_pages);

/* Tells whether a mapping may be undone. If it may not, records a violation. */
static bool sim_may_unmap(const struct sim_mapping *m, const void *key,
			  const struct pci_dev *peer, const void *table)
{
	const char *what = "dma_unmap_pages of";

	if (!m)
		sim_violation("mapping_unknown", "%s %p, which is no DMA mapping", what, key);
	else if (!sim_pin_alive(m->pin))
		sim_violation("mapping_dead", "%s DMA mapping %p after its page table was %s", what,
			      key, m->pin->state == SIM_PIN_PUT ? "put" : "revoked");
	else if (m->pin->object.key != table || (READ_ONCE(m->live) && m->peer != peer))
		sim_violation("mapping_owner",
			      "%s DMA mapping %p of another page table or for another device", what,
			      key);
	else
		return true;
	return false;
}

/*
 * Undoes a mapping of a live table. If the mapping has ended already, that is no mistake of the
 * client.
 */
static int sim_dma_unmap(struct sim_mapping *m, struct pci_dev *peer,
			 struct nvidia_p2p_page_table *table, struct nvidia_p2p_dma_mapping *map)
{
	bool mine;
	int ret;

	if (!READ_ONCE(m->live))
		return driver_dma_unmap_pages(peer, table, map);
	sim_inject_pin(SIM_in_dma_unmap, m->pin);
	mine = sim_mapping_end(m);
	if (!sim_pin_alive(m->pin)) {
		sim_violation("race_dma_unmap",
			      "DMA mapping %p was revoked while dma_unmap_pages was using it", map);
		return 0;
	}
	ret = driver_dma_unmap_pages(peer, table, map);
	if (mine)
		sim_inject_pin(SIM_after_dma_unmap, m->pin);
	return ret;
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
	ret = -EINVAL;
	if (sim_may_unmap(m, dma_mapping, peer, page_table))
		ret = sim_dma_unmap(m, peer, page_table, dma_mapping);
	sim_object_put(object);
	return ret;
}
SIM_EXPORT(nvidia_p2p_dma_unmap_pages);

/* ---- functions that do nothing ---------------------------------------------- */

/*
 * Checks a call that old clients make in the callback. The driver itself frees table and mappings
 * after the callback.
 */
static void sim_check_no_op(const void *key, bool mapping)
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
}

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	CLASS(sim_call, call)(SIM_free_page_table);
	sim_check_no_op(page_table, false);
	return sim_fail(SIM_free_page_table) ?: driver_free_page_table(page_table);
}
SIM_EXPORT(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	CLASS(sim_call, call)(SIM_free_dma_mapping);
	sim_check_no_op(dma_mapping, true);
	return sim_fail(SIM_free_dma_mapping) ?: driver_free_dma_mapping(dma_mapping);
}
SIM_EXPORT(nvidia_p2p_free_dma_mapping);
