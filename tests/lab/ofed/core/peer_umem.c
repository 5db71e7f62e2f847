// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The life of one region, from a failed pin to its release. What is different
 * in G2 is in peer_g2.c, and what may happen meanwhile in peer_invalidate.c.
 */
#include <linux/export.h>
#include <linux/mm.h>
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

void peer_umem_free(struct kref *kref)
{
	struct peer_umem *p = container_of(kref, struct peer_umem, kref);

	mutex_destroy(&p->mapping_lock);
	kfree(p);
}

void peer_unlock(struct peer_umem *p)
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
	bool b8 = peer_switched(PEER_B8_DEREG_FIGURES);

	atomic64_inc(&stats->dealloc_mrs);
	/* B8: the number is read when the table is zeroed already. */
	atomic64_add(b8 ? 0 : nents, &stats->dereg_pages);
	atomic64_add(p->length, &stats->dereg_bytes);
}

/* Undoes dma_map and get_pages. */
void peer_umem_unmap(struct peer_umem *p)
{
	unsigned int nents = p->table_seen.nents;

	peer_hold(PEER_AT_UNMAP);
	peer_table_verify(p);
	peer_call_dma_unmap(p);
	peer_call_put_pages(p);
	memset(&p->table, 0, sizeof(p->table));
	peer_count_unmapped(p, nents);
}

/* After an invalidation: a client that unmaps by itself does so from now on. */
void peer_umem_invalidated(struct peer_umem *p)
{
	peer_table_verify(p);
	memset(&p->table, 0, sizeof(p->table));
	peer_count_unmapped(p, p->table_seen.nents);
	peer_set_live(p, PEER_LIVE_MAPPED, false);
	peer_set_live(p, PEER_LIVE_GOT, false);
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
	init_completion(&p->ended);
	init_completion(&p->forgotten);
	p->umem = umem;
	p->client = client;
	p->context = context;
	p->id = PEER_NO_ID;
	p->length = umem->length;
	p->npages = ib_umem_num_pages(umem);
	p->device = peer_device_get(umem->ibdev);
	p->dma_device = peer_device_told(p->device);
	peer_count(PEER_LIVE_UMEMS, 1);
	return p;
}

static void peer_umem_forget_id(struct peer_umem *p)
{
	if (p->id != PEER_NO_ID)
		xa_erase(&p->client->umems, p->id);
}

/* The client's end: no new invalidation can find the region any more. */
void peer_umem_release(struct peer_umem *p)
{
	if (p->client->unmaps)
		peer_table_verify(p);
	peer_call_release(p->client, p->context);
	if (p->client->ops->release && atomic_read(&p->in_flight))
		peer_violation(p->client, PEER_RELEASE_EARLY,
			       "release of region %llu returned while an invalidation of it was in flight: real servers follow a NULL pointer",
			       p->id);
	peer_client_put(p->client);
}

/* Ours. */
static void peer_umem_end(struct peer_umem *p)
{
	peer_table_free(p);
	xa_erase(&peer_umems, (unsigned long)p->umem);
	put_device(p->dma_device);
	put_device(p->device);
	peer_count(PEER_LIVE_UMEMS, -1);
	kref_put(&p->kref, peer_umem_free);
}

/*
 * A region that the driver has not stopped is unmapped at the last moment, and
 * nothing keeps an invalidation from coming in between: B11, B13.
 */
static void peer_umem_unmap_unstopped(struct peer_umem *p)
{
	if (READ_ONCE(p->state) == PEER_MAPPED) {
		WARN_ON(!p->b11_unstopped && !p->b13_stuck);
		peer_umem_unmap(p);
	}
	mutex_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
	p->state = PEER_UNMAPPED;
	p->invalidate = NULL;
	peer_unlock(p);
}

/* G3A knows no stop: unmaps here, locked. That is bug B1. */
static void peer_umem_unmap_locked(struct peer_umem *p)
{
	mutex_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
	if (p->state == PEER_MAPPED) {
		peer_table_check_mapped(p);
		peer_umem_unmap(p);
	}
	p->state = PEER_UNMAPPED;
	peer_unlock(p);
}

/* All that is left to do for a region that the driver has stopped. */
static void peer_umem_dereg(struct peer_umem *p)
{
	if (p->client->generation == PEER_G3A)
		peer_umem_unmap_locked(p);
	else
		peer_umem_unmap_unstopped(p);
	peer_umem_forget_id(p);
	peer_umem_release(p);
}

static int peer_umem_ticket(struct peer_umem *p)
{
	struct peer_client *client = p->client;
	u32 id;
	int err;

	if (!client->revocable)
		return 0;
	err = peer_fail(PEER_AT_ID);
	if (!err)
		err = xa_alloc_cyclic(&client->umems, &id, p,
				      XA_LIMIT(0, PEER_NO_TICKET - 1),
				      &client->next_id, GFP_KERNEL);
	if (err < 0)
		return err;
	p->id = id;
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
	peer_hold(PEER_AT_MAP);
	peer_set_phase(p, PEER_MAPPING);
	err = peer_call_dma_map(p);
	if (err)
		peer_call_put_pages(p);
	return err;
}

/* The region is the client's now: take it over into the umem. */
int peer_umem_mapped(struct peer_umem *p, unsigned long page_size)
{
	struct peer_stats *stats = &p->client->stats;

	p->state = PEER_MAPPED;
	p->table_seen = p->table;
	atomic64_inc(&stats->alloc_mrs);
	atomic64_add(p->table.nents, &stats->reg_pages);
	atomic64_add(p->length, &stats->reg_bytes);
	return peer_table_check(p, page_size);
}

/* A failure leaves nothing of the client. */
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
		peer_umem_release(p);
		return err;
	}

	err = peer_umem_mapped(p, peer_call_get_page_size(p));
	peer_set_phase(p, PEER_READY);
	/* Nobody invalidates it before the driver is ready for that. */
	p->setup_held = p->client->revocable;
	if (!p->setup_held)
		peer_unlock(p);
	if (err) {
		ib_umem_stop_invalidation_notifier(p->umem);
		peer_umem_dereg(p);
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
		peer_call_release(client, context);
		peer_client_put(client);
		err = -ENOMEM;
	} else {
		p->can_invalidate = access & PEER_ACCESS_INVAL;
		err = peer_is_g2(client) ? peer_g2_setup(p) : peer_umem_setup(p);
		if (err)
			peer_umem_end(p);
	}
	if (!err)
		peer_count(PEER_LIVE_PINNED_PAGES, ib_umem_num_pages(umem));
	return err;
}

struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access, unsigned long flags)
{
	access |= PEER_ACCESS_ALLOW;
	if (flags & IB_PEER_MEM_INVAL_SUPP && !peer_switched(PEER_DROP_INVAL))
		access |= PEER_ACCESS_INVAL;
	return ib_umem_get_va(device, addr, size, access);
}
EXPORT_SYMBOL(ib_umem_get_peer);

int ib_umem_peer_driver_step(struct ib_umem *umem)
{
	peer_hold(PEER_AT_DRIVER);
	return peer_fail(PEER_AT_DRIVER);
}
EXPORT_SYMBOL(ib_umem_peer_driver_step);

int ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					   umem_invalidate_func_t func,
					   void *priv)
{
	struct peer_umem *p = peer_umem_of(umem);

	if (!p)
		return 0;
	if (peer_is_g2(p->client))
		return peer_g2_activate(p, func, priv);
	if (!p->setup_held)
		return 0;
	lockdep_assert_held(&p->mapping_lock);
	p->setup_held = false;
	if (peer_switched(PEER_B13_NEVER_ACTIVATES)) {
		p->b13_stuck = true;
	} else {
		p->invalidate = func;
		p->invalidate_priv = priv;
	}
	peer_unlock(p);
	return 0;
}
EXPORT_SYMBOL(ib_umem_activate_invalidation_notifier);

/*
 * Servers from 5.4-3.0.3 to 25.01 test the wrong way round whether the lock is
 * still held here: they hang when a registration fails in the driver, and
 * unlock the region of a client without tickets without having locked it.
 */
static void peer_tell_b2(struct peer_umem *p)
{
	if (!peer_switched(PEER_B2_STOP_INVERTED))
		return;
	if (p->setup_held)
		peer_violation(p->client, PEER_B2_DEADLOCK,
			       "the driver failed for region %llu: servers with this bug hang now",
			       p->id);
	else if (p->id == PEER_NO_ID)
		peer_count(PEER_B2_UNLOCKS, 1);
}

/* Whether the region is one that the driver forgets to stop. */
static bool peer_is_unstopped(struct peer_umem *p)
{
	if (p->b13_stuck)
		return true;
	if (!peer_switched(PEER_B11_NO_STOP) || p->setup_held)
		return false;
	p->b11_unstopped = true;
	peer_count(PEER_B11_UNSTOPPED, 1);
	return true;
}

static void peer_umem_stop(struct peer_umem *p)
{
	bool mapped = p->state == PEER_MAPPED;

	lockdep_assert_held(&p->mapping_lock);
	p->setup_held = false;
	p->invalidate = NULL;
	if (p->client->generation == PEER_G3A) {
		/* These leave the rest to release. */
		peer_unlock(p);
		return;
	}
	if (mapped)
		peer_table_check_mapped(p);
	if (p->client->unmaps) {
		p->state = PEER_UNMAPPED;
		peer_unlock(p);
		peer_hold(PEER_AT_STOP);
		if (mapped)
			peer_umem_unmap(p);
	} else {
		if (mapped)
			peer_umem_unmap(p);
		p->state = PEER_UNMAPPED;
		peer_unlock(p);
	}
}

void ib_umem_stop_invalidation_notifier(struct ib_umem *umem)
{
	struct peer_umem *p = peer_umem_of(umem);

	if (!p || completion_done(&p->ended))
		return;
	if (peer_is_g2(p->client)) {
		peer_g2_begin_dereg(p);
		return;
	}
	peer_tell_b2(p);
	if (peer_is_unstopped(p))
		return;
	if (!p->setup_held)
		mutex_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
	peer_umem_stop(p);
}
EXPORT_SYMBOL(ib_umem_stop_invalidation_notifier);

bool ib_peer_umem_release(struct ib_umem *umem)
{
	struct peer_umem *p = peer_umem_of(umem);
	size_t npages = ib_umem_num_pages(umem);

	if (!p)
		return false;
	/* In G2 an invalidation may have ended it, and the client be gone. */
	if (!completion_done(&p->ended)) {
		if (peer_is_g2(p->client))
			peer_g2_dereg(p);
		else
			peer_umem_dereg(p);
	}
	peer_umem_end(p);

	peer_count(PEER_LIVE_PINNED_PAGES, -(s64)npages);
	atomic64_sub(npages, &umem->owning_mm->pinned_vm);
	mmdrop(umem->owning_mm);
	kfree(umem);
	return true;
}
