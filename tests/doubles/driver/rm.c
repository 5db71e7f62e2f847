// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The resource manager, as NVIDIA's nv-p2p.c calls it to pin and unpin (src/nvidia of the
 * open driver, mostly kernel/gpu/bus/p2p.c).
 *
 * Each call takes the API lock for itself. A revocable get_pages makes two calls: one finds
 * memory by address and tgid and maps its pages, the other arms the callback. A persistent
 * get_pages also makes two calls: one returns the memory's GPU, the other pins the memory.
 * Memory can be freed between the two calls ("in_get_gap"): get_pages then fails.
 *
 * Persistent pages have no callback. Their frames stay reserved, even if the memory is freed,
 * until the put, which any task may do.
 *
 * put_pages finds a pin by the table's address and the caller's tgid. It finds nothing if
 * another process calls, and the callback stays armed. It also finds nothing after the
 * callback. But the table is freed as soon as the callback has returned, so another pin may
 * get the table's address: a late put then takes away pages that are still in use. With the
 * knob "reuse" an address is used again at once, as it may be in the real driver.
 */
#include "driver.h"
#include "sim.h"

/* Returns the status from which NVIDIA's code makes this error. */
NV_STATUS sim_status(int error)
{
	switch (-error) {
	case 0:
		return NV_OK;
	case EINVAL:
		return NV_ERR_OBJECT_NOT_FOUND;
	case ENOMEM:
		return NV_ERR_NO_MEMORY;
	case ENOTSUPP:
		return NV_ERR_NOT_SUPPORTED;
	case EBUSY:
		return NV_ERR_STATE_IN_USE;
	case ENODEV:
		return NV_ERR_GPU_UUID_NOT_FOUND;
	default:
		return NV_ERR_GENERIC;
	}
}

NV_STATUS sim_rm_lock(const char *what, bool ordered)
{
	return sim_api_lock(what, ordered) ? NV_ERR_INVALID_LOCK_STATE : NV_OK;
}

/* ---- the GPU ---------------------------------------------------------------------- */

static NV_STATUS sim_uuid_new(NvU8 **uuid)
{
	NV_STATUS status = os_alloc_mem((void **)uuid, NVIDIA_P2P_GPU_UUID_LEN);
	int i;

	if (status != NV_OK)
		return status;
	for (i = 0; i < NVIDIA_P2P_GPU_UUID_LEN; i++)
		(*uuid)[i] = 0xa0 + i;
	(*uuid)[0] += sim_knob(gpu);
	return NV_OK;
}

/* Holds a GPU, which its driver must not release then. */
int nvidia_dev_get_uuid(const u8 *uuid, nvidia_stack_t *stack)
{
	sim_add(SIM_live_gpu_holds, 1);
	return 0;
}

void nvidia_dev_put_uuid(const u8 *uuid, nvidia_stack_t *stack)
{
	sim_add(SIM_live_gpu_holds, -1);
}

/* ---- get ------------------------------------------------------------------------ */

/*
 * Returns the allocation of this process that contains a range and may be pinned. gpu.lock is
 * held.
 */
static struct sim_alloc *sim_pinnable(u64 va, u64 length)
{
	struct sim_alloc *alloc = sim_knob(delisted) ? NULL : sim_alloc_find(va);

	return alloc && !alloc->no_p2p && length <= alloc->va + alloc->size - va ? alloc : NULL;
}

/* Maps a pin's pages: finds the caller's memory, and room in BAR1. The API lock is held. */
static int sim_map_pages(struct sim_pin *pin)
{
	struct sim_alloc *alloc;
	int ret;

	guard(mutex)(&sim_gpu.lock);
	alloc = sim_pinnable(pin->va, (u64)pin->entries << SIM_PAGE_SHIFT);
	if (!alloc)
		return -EINVAL;
	pin->first = (pin->va - alloc->va) >> SIM_PAGE_SHIFT;
	ret = sim_bar1_map(alloc, pin);
	if (ret)
		return ret;
	sim_alloc_get(alloc);
	pin->alloc = alloc;
	sim_pin_publish(pin);
	return 0;
}

/*
 * Counts the pages of a range that was not found. NVIDIA's code has already allocated memory for
 * each of these pages.
 */
static void sim_not_found(u64 length)
{
	sim_add(SIM_pages_not_found, length >> SIM_PAGE_SHIFT);
}

/* Maps pages for a table that NVIDIA's code will make, and returns their addresses. */
static NV_STATUS sim_get_pages(const char *what, u64 va, u64 length, bool persistent,
			       struct nvidia_p2p_page_table *table, NvU64 *physical, NvU32 *entries)
{
	struct sim_pin *pin = sim_pin_new(va, length, persistent, table);
	NV_STATUS status = NV_ERR_NO_MEMORY;
	u64 began;
	u32 i;
	int ret;

	/* Lockdep does not watch the lock for persistent pins. apilock.c says why. */
	if (pin)
		status = sim_rm_lock(what, !persistent);
	if (status != NV_OK) {
		sim_pin_drop(pin);
		return status;
	}
	began = sim_begin();
	ret = sim_map_pages(pin);
	for (i = 0; !ret && i < pin->entries; i++)
		physical[i] = sim_alloc_phys(pin->alloc, pin->first + i);
	*entries = pin->entries;
#ifdef NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE
	if (!ret && pin->alloc->coherent)
		table->flags = NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE;
#endif
	pin->began = sim_spend(began, pin->remapped ? SIM_GET : SIM_GET_AGAIN, 1);
	if (ret)
		sim_pin_drop(pin);
	sim_api_unlock();
	if (ret)
		sim_not_found(length);
	return sim_status(ret);
}

/* Injects a free of the memory at an address, if the test has asked for one. */
static void sim_inject_at(enum sim_point now, u64 va)
{
	struct sim_alloc *alloc = sim_alloc_of(va);

	sim_inject(now, alloc);
	if (alloc)
		sim_alloc_put(alloc);
}

NV_STATUS rm_p2p_get_pages(nvidia_stack_t *stack, u64 token, u32 space, u64 va, u64 length,
			   NvU64 *physical, NvU32 *wreqmb_h, NvU32 *rreqmb_h, NvU32 *entries,
			   NvU8 **uuid, void *key)
{
	NV_STATUS status = sim_status(sim_fail(SIM_get_pages));

	/* Today's drivers have no tokens. */
	if (status == NV_OK && (token || space))
		status = NV_ERR_OBJECT_NOT_FOUND;
	if (status == NV_OK)
		status = sim_uuid_new(uuid);
	if (status != NV_OK)
		return status;
	status = sim_get_pages("get_pages", va, length, false, key, physical, entries);
	if (status != NV_OK) {
		os_free_mem(*uuid);
		*uuid = NULL;
		return status;
	}
	memset(wreqmb_h, 0, *entries * sizeof(*wreqmb_h));
	memset(rreqmb_h, 0, *entries * sizeof(*rreqmb_h));
	sim_inject_at(SIM_in_get_gap, va);
	return NV_OK;
}

/* Arms the callback of a complete pin, unless the memory was freed in the meantime. */
NV_STATUS rm_p2p_register_callback(nvidia_stack_t *stack, u64 token, u64 va, u64 length,
				   void *key, void (*callback)(void *data), void *data)
{
	struct sim_pin *pin = sim_pin_find(key);
	NV_STATUS status;

	sim_pin_complete(pin, data);
	pin->callback = callback;
	pin->callback_data = data;
	driver_lead(data, pin);

	status = sim_rm_lock("get_pages", true);
	if (status == NV_OK) {
		mutex_lock(&sim_gpu.lock);
		if (pin->state == SIM_PIN_MAPPED) {
			WRITE_ONCE(pin->state, SIM_PIN_LIVE);
			sim_add(SIM_live_armed_callbacks, 1);
		} else {
			status = NV_ERR_OBJECT_NOT_FOUND;
		}
		mutex_unlock(&sim_gpu.lock);
		sim_api_unlock();
	}
	if (status == NV_OK)
		sim_inject_pin(SIM_before_get_returns, pin);
	sim_pin_drop(pin);
	return status;
}

NV_STATUS rm_p2p_get_gpu_info(nvidia_stack_t *stack, u64 va, u64 length, NvU8 **uuid, void **gpu)
{
	NV_STATUS status = sim_status(sim_fail(SIM_get_pages_persistent));

	*gpu = &sim_gpu;
	if (status == NV_OK)
		status = sim_rm_lock("get_pages_persistent", false);
	if (status != NV_OK)
		return status;
	mutex_lock(&sim_gpu.lock);
	if (!sim_pinnable(va, length))
		status = NV_ERR_OBJECT_NOT_FOUND;
	mutex_unlock(&sim_gpu.lock);
	sim_api_unlock();
	if (status == NV_OK)
		return sim_uuid_new(uuid);
	sim_not_found(length);
	return status;
}

NV_STATUS rm_p2p_get_pages_persistent(nvidia_stack_t *stack, u64 va, u64 length, void **object,
				      NvU64 *physical, NvU32 *entries, void *key, void *gpu)
{
	sim_inject_at(SIM_in_get_gap, va);
	*object = gpu;
	return sim_get_pages("get_pages_persistent", va, length, true, key, physical, entries);
}

#ifdef NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING
/* Refuses a BAR1 mapping without a coherent link. The driver looks the memory up first. */
int sim_refuse_bar1(const char *what, u64 va, u64 length)
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

/* ---- put ------------------------------------------------------------------------ */

/*
 * Handles a get_pages whose memory was freed before the callback was armed. NVIDIA's code then
 * finds no pin to put, and loses the table.
 */
static void sim_pin_lose(struct sim_pin *pin)
{
	sim_add(SIM_tables_lost, 1);
	sim_object_poison(&pin->object);
	sim_object_bury(&pin->object);
}

/* Unpins the pages that a pin still has. The API lock is held. */
static void sim_unpin(struct sim_pin *pin)
{
	struct sim_alloc *alloc = sim_pin_alloc(pin);

	sim_pin_end(pin, SIM_PIN_PUT);
	sim_pin_unmap(alloc, pin);
	if (pin->persistent)
		sim_alloc_settle(alloc);
	sim_alloc_put(alloc);
}

/*
 * Returns the caller's pin with this key, or NULL. Also records violations. The API lock is held.
 */
static struct sim_pin *sim_pin_to_put(struct sim_pin *pin, const void *key)
{
	if (!pin) {
		if (!READ_ONCE(sim_gpu.evicted))
			sim_accuse_table("put_pages", key, NULL);
	} else if (pin->persistent) {
		sim_violation("table_kind", "put_pages of page table %p, which is persistent", key);
		return NULL;
	} else if (pin->state == SIM_PIN_MAPPED || sim_pin_alive(pin)) {
		return !sim_knob(delisted) && pin->tgid == task_tgid_nr(current) ? pin : NULL;
	} else if (pin->state == SIM_PIN_PUT) {
		sim_violation("double_put", "put_pages of page table %p for the second time", key);
		return NULL;
	} else if (pin->state == SIM_PIN_LOST) {
		sim_pin_lose(pin);
		return NULL;
	}
	sim_add(SIM_put_not_found, 1);
	return NULL;
}

/*
 * Checks that the client means @pin. @before is the pin that had this address when the client
 * called.
 */
static void sim_check_put(const struct sim_pin *pin, const struct sim_pin *before, u64 va)
{
	if (pin != before || (pin->reused && va != pin->va))
		sim_violation("aba_put",
			      "put_pages of page table %p is too late: its address has been given to another pin, which ends here",
			      pin->object.key);
	else if (va != pin->va)
		sim_violation("table_address",
			      "put_pages of page table %p with address 0x%llx, but it was got with 0x%llx",
			      pin->object.key, va, pin->va);
}

NV_STATUS rm_p2p_put_pages(nvidia_stack_t *stack, u64 token, u32 space, u64 va, void *key)
{
	struct sim_pin *found, *pin, *before = sim_pin_find(key);
	NV_STATUS status;
	u64 began;

	sim_inject_pin(SIM_before_put, before);
	status = sim_rm_lock("put_pages", true);
	if (status == NV_OK) {
		began = sim_begin();
		/* Another pin may have this address by now, as in the real driver. */
		found = sim_pin_find(key);
		pin = sim_pin_to_put(found, key);
		if (pin) {
			sim_check_put(pin, before, va);
			sim_unpin(pin);
		} else {
			status = NV_ERR_OBJECT_NOT_FOUND;
		}
		began = sim_spend(began, pin && pin->remapped ? SIM_PUT : SIM_PUT_AGAIN, 1);
		if (pin)
			pin->began = began;
		sim_api_unlock();
		sim_pin_drop(found);
	}
	sim_pin_drop(before);
	return status;
}

NV_STATUS rm_p2p_put_pages_persistent(nvidia_stack_t *stack, void *object, void *key)
{
	struct sim_pin *pin = sim_pin_find(key);
	NV_STATUS status;
	u64 began;

	sim_inject_pin(SIM_before_put, pin);
	status = sim_rm_lock("put_pages_persistent", false);
	if (status == NV_OK) {
		began = sim_begin();
		sim_unpin(pin);
		pin->began = sim_spend(began, pin->remapped ? SIM_PUT : SIM_PUT_AGAIN, 1);
		sim_api_unlock();
	}
	sim_pin_drop(pin);
	return status;
}
