// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions that a region passes through, from the core's failed attempt to pin until the
 * release. Invalidations, and the end of a region in G2, are in peer_invalidate.c.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "peer_server.h"

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

	mutex_destroy(&p->lock.mutex);
	kfree(p);
}

/* Sets the region's phase, and wakes the threads that wait for it. */
void peer_set_phase(struct peer_umem *p, enum peer_phase phase)
{
	WRITE_ONCE(p->phase, phase);
	wake_up_all(&p->lock.wait);
}

/* Undoes dma_map and get_pages or, if @by_client, only records that the client has undone them. */
void peer_umem_unmap(struct peer_umem *p, bool by_client)
{
	atomic64_t *stats = p->client->stats;

	if (!by_client)
		peer_hold(PEER_HOLD_unmap);
	peer_table_verify(p);
	if (by_client) {
		peer_set_live(p, PEER_live_mapped, false);
		peer_set_live(p, PEER_live_got, false);
	} else {
		peer_call_dma_unmap(p);
		peer_call_put_pages(p);
	}
	memset(&p->table, 0, sizeof(p->table));
	atomic64_inc(&stats[PEER_dealloc_mrs]);
	/* B8: a real server reads the number after it has zeroed the table. */
	if (!peer_switched(PEER_b8_dereg_figures))
		atomic64_add(p->table_seen.nents, &stats[PEER_dereg_pages]);
	atomic64_add(p->umem->length, &stats[PEER_dereg_bytes]);
}

static struct peer_umem *peer_umem_new(struct ib_umem *umem,
				       struct peer_client *client, void *context)
{
	struct peer_umem *p;

	if (peer_fail(PEER_FAIL_umem))
		return NULL;
	p = kzalloc_obj(*p);
	if (!p)
		return NULL;
	if (xa_err(xa_store(&peer_umems, (unsigned long)umem, p, GFP_KERNEL))) {
		kfree(p);
		return NULL;
	}
	kref_init(&p->kref);
	peer_lock_init(&p->lock);
	p->umem = umem;
	p->client = client;
	p->context = context;
	p->id = PEER_NO_ID;
	p->device = peer_device_get(umem->ibdev);
	p->dma_device = peer_device_told(p->device);
	peer_count(PEER_live_umems, 1);
	return p;
}

/* Ends the region for its client. No new invalidation can find the region any more. */
void peer_umem_release(struct peer_umem *p)
{
	if (p->client->unmaps)
		peer_table_verify(p);
	peer_call_release(p->client, p->context);
	if (p->client->ops->release && atomic_read(&p->in_flight))
		peer_violation(p->client, "release_early",
			       "release of region %llu returned while an invalidation of it was in flight: real servers follow a NULL pointer",
			       p->id);
	peer_client_put(p->client);
}

/* Ends the server's own data of the region. */
static void peer_umem_end(struct peer_umem *p)
{
	peer_table_free(p);
	xa_erase(&peer_umems, (unsigned long)p->umem);
	put_device(p->dma_device);
	put_device(p->device);
	peer_count(PEER_live_umems, -1);
	kref_put(&p->kref, peer_umem_free);
}

/*
 * Ends a region after the driver has called stop. If the driver has not called stop (B11, B13), the
 * region is still mapped, and this function unmaps it. An invalidation may come before that. In G3A
 * there is no call stop, so this function unmaps the region, with the lock held (B1).
 */
static void peer_umem_dereg(struct peer_umem *p)
{
	bool locked = p->client->generation == PEER_G3A;

	if (peer_is_g2(p->client)) {
		peer_g2_dereg(p);
		return;
	}
	if (!locked && READ_ONCE(p->mapped))
		peer_umem_unmap(p, false);
	mutex_lock_nested(&p->lock.mutex, PEER_LOCK_LATER);
	if (locked && p->mapped) {
		peer_table_check_mapped(p);
		peer_umem_unmap(p, false);
	}
	p->mapped = false;
	p->invalidate = NULL;
	peer_unlock(&p->lock);
	peer_umem_forget(p);
	peer_umem_release(p);
}

/* Gives the region a ticket. In G2 this includes regions whose client never invalidates. */
static int peer_umem_ticket(struct peer_umem *p)
{
	struct peer_client *client = p->client;
	bool g2 = peer_is_g2(client);
	u64 id;
	int err;

	if (g2 ? !p->can_invalidate : !client->revocable)
		return 0;
	err = peer_fail(PEER_FAIL_id);
	if (err)
		return err;
	mutex_lock(&client->lock.mutex);
	do {
		id = client->next_ticket++;
		if (!g2 && client->next_ticket == PEER_NO_TICKET)
			client->next_ticket = 0;
		err = xa_insert(&client->umems, id, p, GFP_KERNEL);
	} while (err == -EBUSY);
	if (!err)
		p->id = id;
	peer_unlock(&client->lock);
	return err;
}

/* Takes the ticket back, and wakes the threads that wait until the ticket is taken back. */
void peer_umem_forget(struct peer_umem *p)
{
	if (p->id != PEER_NO_ID)
		xa_erase(&p->client->umems, p->id);
	WRITE_ONCE(p->forgotten, true);
	wake_up_all(&p->lock.wait);
}

/* Makes the client pin and map the range. A failure leaves nothing pinned or mapped. */
static int peer_umem_map(struct peer_umem *p)
{
	int err = peer_call_get_pages(p);

	if (err)
		return err;
	if (peer_is_g2(p->client))
		p->page_size = peer_call_get_page_size(p);
	peer_hold(PEER_HOLD_map);
	peer_set_phase(p, PEER_MAPPING);
	err = peer_call_dma_map(p);
	if (err)
		peer_call_put_pages(p);
	return err;
}

/*
 * Sets the region up. A failure leaves nothing behind. In G2, only the lock of the tickets is used.
 */
static int peer_umem_setup(struct peer_umem *p)
{
	bool g2 = peer_is_g2(p->client);
	struct peer_lock *lock = g2 ? &p->client->lock : &p->lock;
	atomic64_t *stats = p->client->stats;
	int err;

	if (!g2)
		mutex_lock_nested(&lock->mutex, PEER_LOCK_SETUP);
	err = peer_umem_ticket(p);
	if (!err)
		err = peer_umem_map(p);
	if (err) {
		if (g2)
			mutex_lock(&lock->mutex);
		peer_set_phase(p, PEER_FAILED);
		peer_umem_forget(p);
		peer_unlock(lock);
		peer_umem_release(p);
		return err;
	}

	p->mapped = true;
	p->table_seen = p->table;
	atomic64_inc(&stats[PEER_alloc_mrs]);
	atomic64_add(p->table.nents, &stats[PEER_reg_pages]);
	atomic64_add(p->umem->length, &stats[PEER_reg_bytes]);
	if (!g2)
		p->page_size = peer_call_get_page_size(p);
	err = peer_table_check(p);
	peer_set_phase(p, PEER_READY);
	/* The lock stays held, so that no invalidation comes before the driver is ready. */
	p->setup_held = !g2 && p->client->revocable;
	if (!g2 && !p->setup_held)
		peer_unlock(lock);
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
		return -ENOMEM;
	}
	p->can_invalidate = access & PEER_ACCESS_INVAL;
	err = peer_umem_setup(p);
	if (err)
		peer_umem_end(p);
	return err;
}

struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access, unsigned long flags)
{
	access |= PEER_ACCESS_ALLOW;
	if (flags & IB_PEER_MEM_INVAL_SUPP && !peer_switched(PEER_no_inval_supp))
		access |= PEER_ACCESS_INVAL;
	return ib_umem_get_va(device, addr, size, access);
}
EXPORT_SYMBOL(ib_umem_get_peer);

bool ib_peer_separate_entries(void)
{
	return peer_switched(PEER_separate_entries);
}

int ib_umem_peer_driver_step(struct ib_umem *umem)
{
	peer_hold(PEER_HOLD_driver);
	return peer_fail(PEER_FAIL_driver);
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
	lockdep_assert_held(&p->lock.mutex);
	p->setup_held = false;
	p->b13_stuck = peer_switched(PEER_b13_never_activates);
	if (!p->b13_stuck) {
		p->invalidate = func;
		p->invalidate_priv = priv;
	}
	peer_unlock(&p->lock);
	return 0;
}
EXPORT_SYMBOL(ib_umem_activate_invalidation_notifier);

/*
 * Reports defect B2. Servers from 5.4-3.0.3 to 25.01 test the wrong way round whether the lock is
 * held. They therefore hang when a registration fails in the driver, and for a client without
 * tickets they unlock a region that is not locked.
 */
static void peer_tell_b2(struct peer_umem *p)
{
	if (!peer_switched(PEER_b2_stop_inverted))
		return;
	if (p->setup_held)
		peer_violation(p->client, "b2_deadlock",
			       "the driver failed for region %llu: servers with this bug hang now",
			       p->id);
	else if (p->id == PEER_NO_ID)
		peer_count(PEER_b2_unlocks, 1);
}

static void peer_umem_stop(struct peer_umem *p)
{
	bool unlocked = p->client->unmaps, mapped = p->mapped;

	lockdep_assert_held(&p->lock.mutex);
	p->setup_held = false;
	p->invalidate = NULL;
	if (p->client->generation == PEER_G3A) {
		/* The release does the rest for these regions. */
		peer_unlock(&p->lock);
		return;
	}
	if (mapped)
		peer_table_check_mapped(p);
	p->mapped = false;
	if (unlocked) {
		peer_unlock(&p->lock);
		peer_hold(PEER_HOLD_stop);
	}
	if (mapped)
		peer_umem_unmap(p, false);
	if (!unlocked)
		peer_unlock(&p->lock);
}

void ib_umem_stop_invalidation_notifier(struct ib_umem *umem)
{
	struct peer_umem *p = peer_umem_of(umem);

	if (!p || READ_ONCE(p->phase) == PEER_ENDED)
		return;
	if (peer_is_g2(p->client)) {
		peer_g2_begin_dereg(p);
		return;
	}
	peer_tell_b2(p);
	/* Regions that the driver forgets to stop. */
	if (p->b13_stuck)
		return;
	if (peer_switched(PEER_b11_no_stop) && !p->setup_held) {
		peer_count(PEER_b11_unstopped, 1);
		return;
	}
	if (!p->setup_held)
		mutex_lock_nested(&p->lock.mutex, PEER_LOCK_LATER);
	peer_umem_stop(p);
}
EXPORT_SYMBOL(ib_umem_stop_invalidation_notifier);

bool ib_peer_umem_release(struct ib_umem *umem)
{
	struct peer_umem *p = peer_umem_of(umem);

	if (!p)
		return false;
	if (READ_ONCE(p->phase) != PEER_ENDED)
		peer_umem_dereg(p);
	peer_umem_end(p);
	atomic64_sub(ib_umem_num_pages(umem), &umem->owning_mm->pinned_vm);
	mmdrop(umem->owning_mm);
	kfree(umem);
	return true;
}
