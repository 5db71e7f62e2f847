// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The life of one region, from a failed pin to its release, and what may
 * happen to it meanwhile.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "peer_hooks.h"
#include "peer_server.h"

/*
 * What ib_umem_get_peer() tells ib_peer_umem_get() through the access flags
 * that umem.c hands down: bits that no verbs user can set.
 */
#define PEER_ACCESS_ALLOW ((int)BIT(30))
#define PEER_ACCESS_INVAL ((int)BIT(31))

static_assert(!(IB_ACCESS_SUPPORTED & (PEER_ACCESS_ALLOW | PEER_ACCESS_INVAL)));

/*
 * mapping_lock to lockdep: setup is one class, everything later another,
 * because an invalidation only waits for a setup that has no client code
 * left to run. That is what PEER_INVALIDATE_EARLY watches over.
 */
enum {
	PEER_LOCK_SETUP,
	PEER_LOCK_LATER,
};

/* The regions of all clients, by the umem's address. */
static DEFINE_XARRAY(peer_umems);

static struct peer_umem *peer_umem_of(struct ib_umem *umem)
{
	return xa_load(&peer_umems, (unsigned long)umem);
}

bool ib_umem_is_peer(struct ib_umem *umem)
{
	return peer_umem_of(umem);
}
EXPORT_SYMBOL(ib_umem_is_peer);

static void peer_umem_free(struct kref *kref)
{
	struct peer_umem *p = container_of(kref, struct peer_umem, kref);

	mutex_destroy(&p->mapping_lock);
	kfree(p);
}

static void peer_unlock(struct peer_umem *p)
{
	mutex_unlock(&p->mapping_lock);
	wake_up_all(&p->wait);
}

/* Everybody who waits for the region to be mapped, or not. */
static void peer_set_phase(struct peer_umem *p, enum peer_phase phase)
{
	lockdep_assert_held(&p->mapping_lock);
	WRITE_ONCE(p->phase, phase);
	wake_up_all(&p->wait);
}

static void peer_count_unmapped(struct peer_umem *p, unsigned int nents)
{
	struct peer_stats *stats = &p->client->stats;

	atomic64_inc(&stats->dealloc_mrs);
	atomic64_add(nents, &stats->dereg_pages);
	atomic64_add(p->length, &stats->dereg_bytes);
}

/* Undoes dma_map and get_pages. */
static void peer_unmap(struct peer_umem *p)
{
	unsigned int nents = p->table_seen.nents;

	peer_table_verify(p);
	peer_call_dma_unmap(p);
	peer_call_put_pages(p);
	memset(&p->table, 0, sizeof(p->table));
	peer_count_unmapped(p, nents);
}

static struct peer_umem *peer_umem_new(struct ib_umem *umem,
				       struct peer_client *client, void *context)
{
	struct peer_umem *p;

	if (peer_fail(PEER_AT_UMEM))
		return NULL;
	p = kzalloc_obj(*p);
	if (!p)
		return NULL;
	if (xa_err(xa_store(&peer_umems, (unsigned long)umem, p, GFP_KERNEL))) {
		kfree(p);
		return NULL;
	}
	kref_init(&p->kref);
	mutex_init(&p->mapping_lock);
	init_waitqueue_head(&p->wait);
	p->umem = umem;
	p->client = client;
	p->context = context;
	p->id = PEER_NO_ID;
	p->length = umem->length;
	p->npages = ib_umem_num_pages(umem);
	p->dma_device = peer_device_get(umem->ibdev);
	peer_count(PEER_LIVE_UMEMS, 1);
	return p;
}

static void peer_umem_forget_id(struct peer_umem *p)
{
	if (p->id != PEER_NO_ID)
		xa_erase(&p->client->umems, p->id);
}

/* The end: no new invalidation can find the region any more. */
static void peer_umem_end(struct peer_umem *p)
{
	peer_delay(PEER_AT_RELEASE);
	peer_call_release(p->client, p->id, p->context);
	if (p->client->ops->release && atomic_read(&p->in_flight))
		peer_violation(p->client, PEER_RELEASE_EARLY,
			       "release of region %u returned while an invalidation of it was in flight: real servers follow a NULL pointer",
			       p->id);
	peer_client_put(p->client);
	xa_erase(&peer_umems, (unsigned long)p->umem);
	put_device(p->dma_device);
	peer_count(PEER_LIVE_UMEMS, -1);
	kref_put(&p->kref, peer_umem_free);
}

/* What is still mapped when the umem goes: a driver that never stops it. */
static void peer_umem_unmap_rest(struct peer_umem *p)
{
	if (p->client->generation == PEER_G3A) {
		mutex_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
		if (p->state == PEER_MAPPED)
			peer_unmap(p);
		p->state = PEER_UNMAPPED;
		peer_unlock(p);
		return;
	}
	if (p->state != PEER_MAPPED)
		return;
	if (WARN_ON(p->client->revocable))
		ib_umem_stop_invalidation_notifier(p->umem);
	else
		peer_unmap(p);
	p->state = PEER_UNMAPPED;
}

/* All that is left to do for a region that the driver has stopped. */
static void peer_umem_destroy(struct peer_umem *p)
{
	peer_umem_unmap_rest(p);
	peer_table_free(p);
	peer_umem_forget_id(p);
	peer_umem_end(p);
}

static int peer_umem_ticket(struct peer_umem *p)
{
	struct peer_client *client = p->client;
	int err;

	if (!client->revocable)
		return 0;
	err = peer_fail(PEER_AT_ID);
	if (!err)
		err = xa_alloc_cyclic(&client->umems, &p->id, p,
				      XA_LIMIT(0, PEER_NO_ID - 1),
				      &client->next_id, GFP_KERNEL);
	if (err < 0) {
		p->id = PEER_NO_ID;
		return err;
	}
	return 0;
}

/* Has the client pin and map the range. On failure nothing of it is left. */
static int peer_umem_map(struct peer_umem *p)
{
	int err;

	lockdep_assert_held(&p->mapping_lock);
	err = peer_call_get_pages(p);
	if (err)
		return err;
	peer_delay(PEER_AT_MAP);
	peer_set_phase(p, PEER_MAPPING);
	err = peer_call_dma_map(p);
	if (err)
		peer_call_put_pages(p);
	return err;
}

/* The region is the client's now: take it over into the umem. */
static int peer_umem_mapped(struct peer_umem *p)
{
	struct peer_stats *stats = &p->client->stats;
	unsigned long page_size = peer_call_get_page_size(p);

	lockdep_assert_held(&p->mapping_lock);
	p->state = PEER_MAPPED;
	p->table_seen = p->table;
	atomic64_inc(&stats->alloc_mrs);
	atomic64_add(p->table.nents, &stats->reg_pages);
	atomic64_add(p->length, &stats->reg_bytes);
	return peer_table_check(p, page_size);
}

static int peer_umem_setup(struct peer_umem *p)
{
	int err;

	mutex_lock_nested(&p->mapping_lock, PEER_LOCK_SETUP);
	err = peer_umem_ticket(p);
	if (!err)
		err = peer_umem_map(p);
	if (err) {
		peer_set_phase(p, PEER_FAILED);
		peer_umem_forget_id(p);
		peer_unlock(p);
		peer_umem_end(p);
		return err;
	}

	err = peer_umem_mapped(p);
	peer_set_phase(p, PEER_READY);
	/* Nobody invalidates it before the driver is ready for that. */
	p->setup_held = p->client->revocable;
	if (!p->setup_held)
		peer_unlock(p);
	if (err) {
		ib_umem_stop_invalidation_notifier(p->umem);
		peer_umem_destroy(p);
	}
	return err;
}

int ib_peer_umem_get(struct ib_umem *umem, int access, int err)
{
	struct peer_client *client;
	struct peer_umem *p;
	void *context;

	if (!(access & PEER_ACCESS_ALLOW))
		return err;
	client = peer_client_choose(umem->address, umem->length,
				    access & PEER_ACCESS_INVAL, &context);
	if (!client)
		return err;
	p = peer_umem_new(umem, client, context);
	if (!p) {
		peer_call_release(client, PEER_NO_ID, context);
		peer_client_put(client);
		err = -ENOMEM;
	} else {
		err = peer_umem_setup(p);
	}
	if (err)
		peer_count(PEER_FAILED_REGISTRATIONS, 1);
	else
		peer_count(PEER_LIVE_PINNED_PAGES, ib_umem_num_pages(umem));
	return err;
}

struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access, unsigned long flags)
{
	access |= PEER_ACCESS_ALLOW;
	if (flags & IB_PEER_MEM_INVAL_SUPP && !peer_knob_drop_inval())
		access |= PEER_ACCESS_INVAL;
	return ib_umem_get_va(device, addr, size, access);
}
EXPORT_SYMBOL(ib_umem_get_peer);

int ib_umem_peer_driver_step(struct ib_umem *umem)
{
	peer_delay(PEER_AT_DRIVER);
	return peer_fail(PEER_AT_DRIVER);
}
EXPORT_SYMBOL(ib_umem_peer_driver_step);

void ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					    umem_invalidate_func_t func,
					    void *priv)
{
	struct peer_umem *p = peer_umem_of(umem);

	if (!p || !p->setup_held)
		return;
	lockdep_assert_held(&p->mapping_lock);
	peer_trace(p->client, PEER_ACTIVATE, p->id, 0);
	p->invalidate = func;
	p->invalidate_priv = priv;
	p->setup_held = false;
	peer_unlock(p);
}
EXPORT_SYMBOL(ib_umem_activate_invalidation_notifier);

/*
 * Servers from 5.4-3.0.3 to 25.01 test the wrong way round whether the lock is
 * still held here: they hang when a registration fails in the driver, and
 * unlock the region of a client without tickets without having locked it.
 */
static void peer_tell_b2(struct peer_umem *p)
{
	if (!peer_knob_b2())
		return;
	if (p->setup_held)
		peer_violation(p->client, PEER_B2_DEADLOCK,
			       "the driver failed for region %u: servers with this bug hang now",
			       p->id);
	else if (p->id == PEER_NO_ID)
		peer_count(PEER_B2_UNLOCKS, 1);
}

void ib_umem_stop_invalidation_notifier(struct ib_umem *umem)
{
	struct peer_umem *p = peer_umem_of(umem);
	bool mapped;

	if (!p)
		return;
	peer_tell_b2(p);
	if (!p->setup_held)
		mutex_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
	lockdep_assert_held(&p->mapping_lock);
	peer_trace(p->client, PEER_STOP, p->id, p->state);
	p->setup_held = false;
	p->invalidate = NULL;
	if (p->client->generation == PEER_G3A) {
		/* These leave the rest to release. */
		peer_unlock(p);
		return;
	}
	mapped = p->state == PEER_MAPPED;
	if (p->client->unmaps) {
		p->state = PEER_UNMAPPED;
		peer_unlock(p);
		peer_delay(PEER_AT_STOP);
		if (mapped)
			peer_unmap(p);
	} else {
		if (mapped)
			peer_unmap(p);
		p->state = PEER_UNMAPPED;
		peer_unlock(p);
	}
}
EXPORT_SYMBOL(ib_umem_stop_invalidation_notifier);

bool ib_peer_umem_release(struct ib_umem *umem)
{
	struct peer_umem *p = peer_umem_of(umem);
	size_t npages = ib_umem_num_pages(umem);

	if (!p)
		return false;
	peer_umem_destroy(p);

	peer_count(PEER_LIVE_PINNED_PAGES, -(s64)npages);
	atomic64_sub(npages, &umem->owning_mm->pinned_vm);
	mmdrop(umem->owning_mm);
	kfree(umem);
	return true;
}

/* The region with a ticket, with a reference. */
static struct peer_umem *peer_umem_find(struct peer_client *client, u64 ticket)
{
	struct peer_umem *p;

	xa_lock(&client->umems);
	atomic64_inc(&client->stats.free_callbacks);
	p = xa_load(&client->umems, ticket);
	if (p) {
		kref_get(&p->kref);
		atomic_inc(&p->in_flight);
	}
	xa_unlock(&client->umems);
	return p;
}

static void peer_tell_deadlock(struct peer_umem *p, const char *what)
{
	char holder[80];

	if (!peer_describe_call(p, holder, sizeof(holder)))
		strscpy(holder, "nobody in the client");
	peer_violation(p->client, PEER_INVALIDATE_DEADLOCK,
		       "invalidation of region %u gave up waiting for its %s after %d s; there now: %s",
		       p->id, what, PEER_DEADLOCK_SECONDS, holder);
}

/*
 * Waits until the region is mapped. A client may call the moment that its
 * dma_map has decided to succeed, never before.
 */
static bool peer_wait_ready(struct peer_umem *p)
{
	enum peer_phase phase = READ_ONCE(p->phase);

	if (phase == PEER_READY)
		return true;
	if (phase == PEER_PINNING) {
		peer_violation(p->client, PEER_INVALIDATE_EARLY,
			       "invalidation of region %u before its dma_map", p->id);
	}
	if (!wait_event_timeout(p->wait, READ_ONCE(p->phase) >= PEER_READY,
				PEER_DEADLOCK_SECONDS * HZ)) {
		peer_tell_deadlock(p, "registration");
		return false;
	}
	if (READ_ONCE(p->phase) == PEER_READY)
		return true;
	if (phase != PEER_PINNING)
		peer_violation(p->client, PEER_INVALIDATE_EARLY,
			       "invalidation of region %u, whose dma_map failed", p->id);
	return false;
}

/* As mutex_lock(), but a deadlock in the client does not take the machine. */
static bool peer_lock_or_tell(struct peer_umem *p)
{
	might_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
	if (wait_event_timeout(p->wait, mutex_trylock(&p->mapping_lock),
			       PEER_DEADLOCK_SECONDS * HZ))
		return true;
	peer_tell_deadlock(p, "lock");
	return false;
}

static void peer_umem_invalidate(struct peer_umem *p)
{
	struct peer_client *client = p->client;

	if (!peer_wait_ready(p) || !peer_lock_or_tell(p))
		return;
	if (p->state != PEER_MAPPED) {
		peer_count(PEER_INVALIDATIONS_LATE, 1);
		peer_unlock(p);
		return;
	}
	if (p->invalidate)
		p->invalidate(p->umem, p->invalidate_priv);
	if (client->unmaps) {
		peer_table_verify(p);
		memset(&p->table, 0, sizeof(p->table));
		p->state = PEER_INVALIDATED;
		peer_count_unmapped(p, p->table_seen.nents);
		peer_count(PEER_LIVE_MAPPED, -1);
		peer_count(PEER_LIVE_GOT, -1);
	} else {
		peer_unmap(p);
		p->state = PEER_UNMAPPED;
	}
	peer_count(PEER_REVOKED_UMEMS, 1);
	peer_unlock(p);
}

static void peer_invalidate_ticket(struct peer_client *client, u64 ticket)
{
	struct peer_umem *p = peer_umem_find(client, ticket);

	if (!p) {
		peer_count(PEER_INVALIDATIONS_UNKNOWN, 1);
		return;
	}
	if (peer_in_call(p)) {
		peer_violation(client, PEER_REENTRY,
			       "region %u invalidated from inside an operation on it: real servers hang",
			       p->id);
	} else {
		peer_delay(PEER_AT_INVALIDATE);
		peer_umem_invalidate(p);
	}
	atomic_dec(&p->in_flight);
	kref_put(&p->kref, peer_umem_free);
}

static bool peer_is_atomic(void)
{
	return irqs_disabled() || rcu_preempt_depth() ||
	       (IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible());
}

/* What clients get as their invalidate callback. */
int peer_invalidate(void *handle, u64 core_context)
{
	struct peer_client *client = peer_client_enter(handle);

	peer_count(PEER_INVALIDATIONS, 1);
	if (!client) {
		peer_violation(NULL, PEER_BAD_HANDLE,
			       "invalidation through %p, which is not registered", handle);
		return 0;
	}
	if (peer_is_atomic()) {
		peer_violation(client, PEER_INVALIDATE_ATOMIC,
			       "invalidation of region %llu where it may not sleep",
			       core_context);
		goto out;
	}
	if (core_context >= PEER_NO_ID) {
		peer_violation(client, PEER_INVALIDATE_TICKET,
			       "invalidation with %#llx, a ticket never given out",
			       core_context);
		goto out;
	}
	peer_count(PEER_LIVE_INVALIDATIONS, 1);
	peer_trace(client, PEER_INVALIDATE, core_context, 0);
	peer_invalidate_ticket(client, core_context);
	peer_trace(client, PEER_INVALIDATE_DONE, core_context, 0);
	peer_count(PEER_LIVE_INVALIDATIONS, -1);
out:
	peer_client_leave(client);
	return 0;
}
