// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fourteen exports, and what each of them promises.
 *
 * get_pages             the range must be 64 KiB-aligned and lie within one
 *                       allocation of the calling process, found by tgid.
 *                       The API lock is taken twice: to look the memory up, and
 *                       to arm the callback. Memory that was freed in between
 *                       makes it -EINVAL. The table's address is stored early;
 *                       after a failure it is NULL, or points to nothing.
 * put_pages             keyed by the table's address and the caller's tgid. Any
 *                       other process finds nothing, gets 0, and the callback
 *                       stays armed. So does one that comes after the callback.
 * ..._persistent        no callback. The frames stay reserved, whoever frees
 *                       the memory, until the put, which any task may make. The
 *                       GPU is kept referenced for as long.
 * dma_map_pages         reads the table before it has any lock: it cannot be
 *                       made safe against the callback. One DMA mapping for
 *                       each 64 KiB.
 * dma_unmap_pages       needs no API lock. A mapping that has gone already is
 *                       not missed, as long as its table lives.
 * free_page_table,
 * free_dma_mapping      do nothing; the driver frees both after the callback.
 * init_mapping,
 * destroy_mapping       not supported.
 * ..._rsync_...         one driver may register; there are no registers.
 *
 * Tokens are a thing of the past: only 0 is accepted.
 *
 * Wherever the real driver would take a client at its word and crash, read
 * freed memory or free somebody else's, a violation is recorded instead.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "sim.h"

#define CALLER __builtin_return_address(0)

/* ---- what a client passes in ------------------------------------------- */

/* Say what is wrong with a pointer that should have been a live table. */
static void sim_accuse_table(const char *what, const void *table,
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

/* The allocation of a live pin, with a reference, or NULL. */
static struct sim_alloc *sim_pin_alloc(struct sim_pin *pin)
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

static void sim_strike_pin(enum sim_moment now, struct sim_pin *pin)
{
	struct sim_alloc *alloc = sim_pin_alloc(pin);

	sim_strike(now, alloc);
	if (alloc)
		sim_alloc_put(alloc);
}

/* ---- get --------------------------------------------------------------- */

struct sim_get {
	enum sim_export which;
	const char *what;
	u64 va;
	u64 length;
	struct nvidia_p2p_page_table **table;
	void (*callback)(void *data);
	void *data;
	bool persistent;
	void *caller;
};

/* The memory is there, is the caller's, and fits into BAR1. */
static int sim_get_lookup(const struct sim_get *get, struct sim_pin *pin)
{
	struct sim_gpu *gpu = pin->gpu;
	struct sim_alloc *alloc;
	int ret;

	mutex_lock(&gpu->lock);
	alloc = sim_alloc_find(gpu, get->va);
	if (!alloc || get->length > alloc->va + alloc->size - get->va) {
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

	ret = sim_fail(get->which);
	if (ret)
		goto early;
	ret = sim_api_lock(get->what, false);
	if (ret)
		goto early;
	ret = sim_get_lookup(get, pin);
	sim_api_unlock();
	if (ret)
		goto early;

	/* From here on pin->alloc is ours, and soon not only ours. */
	alloc = pin->alloc;
	sim_alloc_get(alloc);
	ret = sim_pin_fill(pin);
	if (ret)
		goto late;

	if (READ_ONCE(sim_knobs.get_gap_ms))
		msleep(READ_ONCE(sim_knobs.get_gap_ms));
	sim_strike(SIM_STRIKE_IN_GET_GAP, alloc);

	if (get->persistent) {
		pin->device_ref = true;
		sim_add(SIM_LIVE_DEVICE_REFS, 1);
		sim_get_publish(pin);
	} else {
		ret = sim_api_lock(get->what, false);
		if (ret)
			goto late;
		ret = sim_get_publish(pin);
		sim_api_unlock();
		if (ret) {
			sim_add(SIM_REVOKED_IN_GET, 1);
			goto late;
		}
	}

	sim_strike(SIM_STRIKE_BEFORE_GET_RETURNS, alloc);
	sim_strike(SIM_STRIKE_AFTER_GET, alloc);
	sim_alloc_put(alloc);
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
	struct sim_get get = {
		.which = SIM_GET_PAGES,
		.what = "get_pages",
		.va = virtual_address,
		.length = length,
		.table = page_table,
		.callback = free_callback,
		.data = data,
		.caller = CALLER,
	};

	sim_enter(SIM_GET_PAGES);
	if (!free_callback || p2p_token || va_space)
		return -EINVAL;
	return sim_get_pages(&get);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages);

int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags)
{
	struct sim_get get = {
		.which = SIM_GET_PAGES_PERSISTENT,
		.what = "get_pages_persistent",
		.va = virtual_address,
		.length = length,
		.table = page_table,
		.persistent = true,
		.caller = CALLER,
	};

	sim_enter(SIM_GET_PAGES_PERSISTENT);
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
EXPORT_SYMBOL_GPL(nvidia_p2p_get_pages_persistent);

/* ---- put --------------------------------------------------------------- */

static void sim_check_address(const char *what, const struct sim_pin *pin,
			      u64 va, void *caller)
{
	if (va != pin->va)
		sim_violation(SIM_BAD_TABLE_ADDRESS,
			      "%s of page table %p with address 0x%llx, but it was got with 0x%llx, from %pS",
			      what, pin->table, va, pin->va, caller);
}

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

int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct sim_alloc *alloc = NULL;
	struct sim_pin *pin;
	int ret;

	sim_enter(SIM_PUT_PAGES);
	if (!page_table)
		return 0;
	ret = sim_fail(SIM_PUT_PAGES);
	if (ret)
		return ret;

	pin = sim_pin_find(&sim_gpu, page_table);
	sim_strike_pin(SIM_STRIKE_BEFORE_PUT, pin);
	sim_pin_drop(pin);

	ret = sim_api_lock("put_pages", true);
	if (ret)
		return ret;

	/* The address may mean something else by now, as in the real driver. */
	pin = sim_pin_find(&sim_gpu, page_table);
	if (pin && sim_pin_alive(pin) && !pin->persistent &&
	    pin->tgid == task_tgid_nr(current) && sim_disarm(pin)) {
		alloc = sim_pin_alloc(pin);
		sim_check_address("put_pages", pin, virtual_address, CALLER);
		sim_pin_release(pin, SIM_PIN_PUT);
	} else if (pin && pin->persistent) {
		sim_violation(SIM_BAD_TABLE_KIND,
			      "put_pages of persistent page table %p, from %pS",
			      page_table, CALLER);
	} else if (pin && sim_pin_alive(pin)) {
		sim_add(SIM_PUT_OTHER_TGID, 1);
	} else if (pin && pin->state == SIM_PIN_PUT) {
		sim_violation(SIM_BAD_DOUBLE_PUT,
			      "put_pages of page table %p for the second time, from %pS",
			      page_table, CALLER);
	} else {
		if (!pin && !READ_ONCE(sim_gpu.evicted))
			sim_accuse_table("put_pages", page_table, NULL, CALLER);
		sim_add(SIM_PUT_NOT_FOUND, 1);
	}
	sim_api_unlock();
	if (alloc)
		sim_alloc_put(alloc);
	sim_pin_drop(pin);
	return 0;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages);

/* The GPU is let go even by a put that fails. */
static void sim_put_device(struct sim_pin *pin)
{
	mutex_lock(&pin->gpu->lock);
	if (pin->device_ref)
		sim_add(SIM_LIVE_DEVICE_REFS, -1);
	pin->device_ref = false;
	mutex_unlock(&pin->gpu->lock);
}

int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags)
{
	struct sim_alloc *alloc;
	struct sim_pin *pin;
	int ret;

	sim_enter(SIM_PUT_PAGES_PERSISTENT);
	if (flags)
		return -EINVAL;
	if (!page_table)
		return 0;

	pin = sim_pin_find(&sim_gpu, page_table);
	if (!pin || !sim_pin_alive(pin)) {
		if (pin && pin->state == SIM_PIN_PUT)
			sim_violation(SIM_BAD_DOUBLE_PUT,
				      "put_pages_persistent of page table %p for the second time, from %pS",
				      page_table, CALLER);
		else
			sim_accuse_table("put_pages_persistent", page_table,
					 pin, CALLER);
		ret = -EINVAL;
		goto out;
	}
	if (!pin->persistent) {
		sim_violation(SIM_BAD_TABLE_KIND,
			      "put_pages_persistent of page table %p, which is not persistent, from %pS",
			      page_table, CALLER);
		ret = -EINVAL;
		goto out;
	}

	ret = sim_fail(SIM_PUT_PAGES_PERSISTENT);
	if (!ret) {
		sim_strike_pin(SIM_STRIKE_BEFORE_PUT, pin);
		ret = sim_api_lock("put_pages_persistent", false);
	}
	if (ret) {
		sim_put_device(pin);
		goto out;
	}

	alloc = sim_pin_alloc(pin);
	if (alloc) {
		sim_check_address("put_pages_persistent", pin, virtual_address,
				  CALLER);
		sim_put_device(pin);
		sim_pin_release(pin, SIM_PIN_PUT);
		sim_alloc_settle(alloc);
	} else {
		sim_violation(SIM_BAD_DOUBLE_PUT,
			      "put_pages_persistent of page table %p by two tasks at once, from %pS",
			      page_table, CALLER);
		ret = -EINVAL;
	}
	sim_api_unlock();
	if (alloc)
		sim_alloc_put(alloc);
out:
	sim_pin_drop(pin);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_pages_persistent);

/* ---- DMA --------------------------------------------------------------- */

int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping)
{
	struct sim_mapping *m;
	struct sim_pin *pin;
	int ret;

	sim_enter(SIM_DMA_MAP_PAGES);
	if (!peer || !page_table || !dma_mapping) {
		sim_violation(SIM_BAD_NULL, "dma_map_pages with a NULL %s, from %pS",
			      !peer ? "device" : !page_table ? "page table" :
			      "place for the mapping", CALLER);
		return -EINVAL;
	}
	if (!sim_is_pci(peer)) {
		sim_violation(SIM_BAD_PEER,
			      "dma_map_pages for %p, which is no PCI device, from %pS",
			      peer, CALLER);
		return -EINVAL;
	}

	/* Here the real driver reads the table, holding nothing. */
	pin = sim_pin_find(&sim_gpu, page_table);
	if (!pin || !sim_pin_alive(pin)) {
		sim_accuse_table("dma_map_pages", page_table, pin, CALLER);
		sim_pin_drop(pin);
		return -EINVAL;
	}

	*dma_mapping = NULL;
	ret = sim_fail(SIM_DMA_MAP_PAGES);
	if (ret)
		goto out;
	sim_strike_pin(SIM_STRIKE_IN_DMA_MAP, pin);

	ret = sim_api_lock("dma_map_pages", !pin->persistent);
	if (ret)
		goto out;
	if (sim_pin_alive(pin)) {
		sim_pin_check(pin, "dma_map_pages");
		ret = sim_mapping_new(pin, peer, &m);
		if (!ret)
			*dma_mapping = m->map;
	} else {
		sim_violation(SIM_BAD_RACE_DMA_MAP,
			      "page table %p was revoked while dma_map_pages was reading it, from %pS",
			      page_table, CALLER);
		ret = -EIO;
	}
	sim_api_unlock();
	if (!ret)
		sim_strike_pin(SIM_STRIKE_AFTER_DMA_MAP, pin);
out:
	sim_pin_drop(pin);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_dma_map_pages);

int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping)
{
	struct sim_mapping *m;
	int ret;

	sim_enter(SIM_DMA_UNMAP_PAGES);
	if (!peer || !page_table || !dma_mapping) {
		sim_violation(SIM_BAD_NULL, "dma_unmap_pages with a NULL %s, from %pS",
			      !peer ? "device" : !page_table ? "page table" :
			      "mapping", CALLER);
		return -EINVAL;
	}
	ret = sim_fail(SIM_DMA_UNMAP_PAGES);
	if (ret)
		return ret;

	m = sim_mapping_find(&sim_gpu, dma_mapping);
	if (!m) {
		sim_violation(SIM_BAD_MAPPING_UNKNOWN,
			      "dma_unmap_pages of %p, which is no DMA mapping, from %pS",
			      dma_mapping, CALLER);
		return -EINVAL;
	}
	if (m->pin->table != page_table) {
		sim_violation(SIM_BAD_MAPPING_OWNER,
			      "dma_unmap_pages of DMA mapping %p with page table %p, but it was made from %p, from %pS",
			      dma_mapping, page_table, m->pin->table, CALLER);
		ret = -EINVAL;
		goto out;
	}
	if (!sim_pin_alive(m->pin)) {
		sim_violation(SIM_BAD_MAPPING_DEAD,
			      "dma_unmap_pages of DMA mapping %p after its page table was %s, from %pS",
			      dma_mapping,
			      m->pin->state == SIM_PIN_PUT ? "put" : "revoked",
			      CALLER);
		ret = -EINVAL;
		goto out;
	}
	if (!READ_ONCE(m->live)) {
		sim_add(SIM_DMA_UNMAP_AGAIN, 1);
		goto out;
	}
	if (m->peer != peer) {
		sim_violation(SIM_BAD_MAPPING_OWNER,
			      "dma_unmap_pages of DMA mapping %p for another device than it was made for, from %pS",
			      dma_mapping, CALLER);
		ret = -EINVAL;
		goto out;
	}

	sim_strike_pin(SIM_STRIKE_IN_DMA_UNMAP, m->pin);
	if (sim_mapping_unlink(m)) {
		sim_mapping_release(m);
		sim_strike_pin(SIM_STRIKE_AFTER_DMA_UNMAP, m->pin);
	} else if (sim_pin_alive(m->pin)) {
		sim_add(SIM_DMA_UNMAP_AGAIN, 1);
	} else {
		sim_violation(SIM_BAD_RACE_DMA_UNMAP,
			      "DMA mapping %p was revoked while dma_unmap_pages was using it, from %pS",
			      dma_mapping, CALLER);
	}
out:
	sim_mapping_drop(m);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_dma_unmap_pages);

/* ---- the frees that do nothing ----------------------------------------- */

int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	struct sim_pin *pin;
	int ret;

	sim_enter(SIM_FREE_PAGE_TABLE);
	ret = sim_fail(SIM_FREE_PAGE_TABLE);
	pin = sim_pin_find(&sim_gpu, page_table);
	if (pin ? READ_ONCE(pin->state) == SIM_PIN_PUT :
	    !READ_ONCE(sim_gpu.evicted))
		sim_violation(SIM_BAD_NOOP_FREE,
			      "free_page_table of %p, %s, from %pS", page_table,
			      pin ? "which was put" : "which is no page table",
			      CALLER);
	sim_pin_drop(pin);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_free_page_table);

int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping)
{
	struct sim_mapping *m;
	int ret;

	sim_enter(SIM_FREE_DMA_MAPPING);
	ret = sim_fail(SIM_FREE_DMA_MAPPING);
	m = sim_mapping_find(&sim_gpu, dma_mapping);
	if (m ? READ_ONCE(m->pin->state) == SIM_PIN_PUT :
	    !READ_ONCE(sim_gpu.evicted))
		sim_violation(SIM_BAD_NOOP_FREE,
			      "free_dma_mapping of %p, %s, from %pS",
			      dma_mapping, m ? "whose page table was put" :
			      "which is no DMA mapping", CALLER);
	sim_mapping_drop(m);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_free_dma_mapping);

/* ---- what nobody uses -------------------------------------------------- */

int nvidia_p2p_init_mapping(u64 p2p_token, struct nvidia_p2p_params *params,
			    void (*destroy_callback)(void *data), void *data)
{
	sim_enter(SIM_INIT_MAPPING);
	return -ENOTSUPP;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_init_mapping);

int nvidia_p2p_destroy_mapping(u64 p2p_token)
{
	sim_enter(SIM_DESTROY_MAPPING);
	return -ENOTSUPP;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_destroy_mapping);

static DEFINE_SPINLOCK(rsync_lock);
static struct nvidia_p2p_rsync_driver *rsync_driver;
static void *rsync_data;

int nvidia_p2p_register_rsync_driver(struct nvidia_p2p_rsync_driver *driver,
				     void *data)
{
	int ret;

	sim_enter(SIM_REGISTER_RSYNC_DRIVER);
	ret = sim_fail(SIM_REGISTER_RSYNC_DRIVER);
	if (ret)
		return ret;
	if (!driver || !NVIDIA_P2P_RSYNC_DRIVER_VERSION_COMPATIBLE(driver) ||
	    !driver->get_relaxed_ordering_mode ||
	    !driver->put_relaxed_ordering_mode || !driver->wait_for_rsync)
		return -EINVAL;

	spin_lock(&rsync_lock);
	if (rsync_driver) {
		ret = -EBUSY;
	} else {
		rsync_driver = driver;
		rsync_data = data;
		sim_add(SIM_LIVE_RSYNC_DRIVERS, 1);
	}
	spin_unlock(&rsync_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_register_rsync_driver);

void nvidia_p2p_unregister_rsync_driver(struct nvidia_p2p_rsync_driver *driver,
					void *data)
{
	bool mine;

	sim_enter(SIM_UNREGISTER_RSYNC_DRIVER);
	spin_lock(&rsync_lock);
	mine = driver && rsync_driver == driver && rsync_data == data;
	if (mine) {
		rsync_driver = NULL;
		rsync_data = NULL;
		sim_add(SIM_LIVE_RSYNC_DRIVERS, -1);
	}
	spin_unlock(&rsync_lock);
	if (!mine)
		sim_violation(SIM_BAD_RSYNC,
			      "unregister_rsync_driver of one that is not registered, from %pS",
			      CALLER);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_unregister_rsync_driver);

int nvidia_p2p_get_rsync_registers(struct nvidia_p2p_rsync_reg_info **reg_info)
{
	sim_enter(SIM_GET_RSYNC_REGISTERS);
	return -ENODEV;
}
EXPORT_SYMBOL_GPL(nvidia_p2p_get_rsync_registers);

void nvidia_p2p_put_rsync_registers(struct nvidia_p2p_rsync_reg_info *reg_info)
{
	sim_enter(SIM_PUT_RSYNC_REGISTERS);
	if (reg_info)
		sim_violation(SIM_BAD_RSYNC,
			      "put_rsync_registers of what nobody can have got, from %pS",
			      CALLER);
}
EXPORT_SYMBOL_GPL(nvidia_p2p_put_rsync_registers);
