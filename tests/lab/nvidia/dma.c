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
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/pci.h>

#include "sim.h"

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

static bool sim_page_size_fits(const struct sim_pin *pin)
{
	return pin->table->page_size == NVIDIA_P2P_PAGE_SIZE_64KB ||
	       pin->table->page_size == NVIDIA_P2P_PAGE_SIZE_128KB;
}

int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping)
{
	struct sim_mapping *m;
	struct sim_pin *pin;
	int ret;

	CLASS(sim_call, call)(SIM_DMA_MAP_PAGES);
	if (!peer || !page_table || !dma_mapping) {
		sim_violation(SIM_BAD_NULL, "dma_map_pages with a NULL %s, from %pS",
			      !peer ? "device" : !page_table ? "page table" :
			      "place for the mapping", SIM_CALLER);
		return -EINVAL;
	}
	if (!sim_is_pci(peer)) {
		sim_violation(SIM_BAD_PEER,
			      "dma_map_pages for %p, which is no PCI device, from %pS",
			      peer, SIM_CALLER);
		return -EINVAL;
	}

	/* Here the real driver reads the table, holding nothing. */
	pin = sim_pin_find(&sim_gpu, page_table);
	if (!pin || !sim_pin_alive(pin)) {
		sim_accuse_table("dma_map_pages", page_table, pin, SIM_CALLER);
		sim_pin_drop(pin);
		return -EINVAL;
	}

	*dma_mapping = NULL;
	ret = sim_fail(SIM_DMA_MAP_PAGES);
	if (ret)
		goto out;
	sim_inject_pin(SIM_INJECT_IN_DMA_MAP, pin);

	/* Persistent ones are not in lockdep's order: see apilock.c. */
	ret = sim_api_lock("dma_map_pages", !pin->persistent);
	if (ret)
		goto out;
	if (sim_pin_alive(pin) && !sim_page_size_fits(pin)) {
		sim_violation(SIM_BAD_PAGE_SIZE,
			      "dma_map_pages of page table %p, whose page size is %u: the real driver stops the kernel, from %pS",
			      page_table, pin->table->page_size, SIM_CALLER);
		ret = -EINVAL;
	} else if (sim_pin_alive(pin)) {
		sim_pin_check(pin, "dma_map_pages");
		ret = sim_mapping_new(pin, peer, &m);
		if (!ret)
			*dma_mapping = m->map;
	} else {
		sim_violation(SIM_BAD_RACE_DMA_MAP,
			      "page table %p was revoked while dma_map_pages was reading it, from %pS",
			      page_table, SIM_CALLER);
		ret = -EIO;
	}
	sim_api_unlock();
	if (!ret)
		sim_inject_pin(SIM_INJECT_AFTER_DMA_MAP, pin);
out:
	sim_pin_drop(pin);
	return ret;
}
SIM_EXPORT(nvidia_p2p_dma_map_pages);

int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping)
{
	struct sim_mapping *m;
	int ret;

	CLASS(sim_call, call)(SIM_DMA_UNMAP_PAGES);
	if (!peer || !page_table || !dma_mapping) {
		sim_violation(SIM_BAD_NULL, "dma_unmap_pages with a NULL %s, from %pS",
			      !peer ? "device" : !page_table ? "page table" :
			      "mapping", SIM_CALLER);
		return -EINVAL;
	}
	ret = sim_fail(SIM_DMA_UNMAP_PAGES);
	if (ret)
		return ret;

	m = sim_mapping_find(&sim_gpu, dma_mapping);
	if (!m) {
		sim_violation(SIM_BAD_MAPPING_UNKNOWN,
			      "dma_unmap_pages of %p, which is no DMA mapping, from %pS",
			      dma_mapping, SIM_CALLER);
		return -EINVAL;
	}
	if (m->pin->table != page_table) {
		sim_violation(SIM_BAD_MAPPING_OWNER,
			      "dma_unmap_pages of DMA mapping %p with page table %p, but it was made from %p, from %pS",
			      dma_mapping, page_table, m->pin->table, SIM_CALLER);
		ret = -EINVAL;
		goto out;
	}
	if (!sim_pin_alive(m->pin)) {
		sim_violation(SIM_BAD_MAPPING_DEAD,
			      "dma_unmap_pages of DMA mapping %p after its page table was %s, from %pS",
			      dma_mapping,
			      m->pin->state == SIM_PIN_PUT ? "put" : "revoked",
			      SIM_CALLER);
		ret = -EINVAL;
		goto out;
	}
	if (!READ_ONCE(m->live))
		goto out;
	if (m->peer != peer) {
		sim_violation(SIM_BAD_MAPPING_OWNER,
			      "dma_unmap_pages of DMA mapping %p for another device than it was made for, from %pS",
			      dma_mapping, SIM_CALLER);
		ret = -EINVAL;
		goto out;
	}

	sim_inject_pin(SIM_INJECT_IN_DMA_UNMAP, m->pin);
	if (sim_mapping_unlink(m)) {
		sim_mapping_release(m);
		sim_inject_pin(SIM_INJECT_AFTER_DMA_UNMAP, m->pin);
	} else if (!sim_pin_alive(m->pin)) {
		sim_violation(SIM_BAD_RACE_DMA_UNMAP,
			      "DMA mapping %p was revoked while dma_unmap_pages was using it, from %pS",
			      dma_mapping, SIM_CALLER);
	}
out:
	sim_mapping_drop(m);
	return ret;
}
SIM_EXPORT(nvidia_p2p_dma_unmap_pages);
