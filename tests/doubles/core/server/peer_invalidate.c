// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Invalidations, by which a client says that a region loses its memory; and the end of a
 * region in G2.
 */
#include <linux/preempt.h>

#include "peer_server.h"

void peer_unlock(struct peer_lock *lock)
{
	mutex_unlock(&lock->mutex);
	wake_up_all(&lock->wait);
}

/*
 * Waits until the region is mapped. A client must not invalidate before it is certain that its
 * dma_map succeeds.
 */
static bool peer_wait_ready(struct peer_umem *p)
{
	enum peer_phase phase = READ_ONCE(p->phase);

	if (phase == PEER_READY)
		return true;
	if (phase == PEER_PINNING)
		peer_violation(p->client, "invalidate_early",
			       "invalidation of region %llu before its dma_map", p->id);
	if (!peer_wait_or_tell(p->client, p->id, "registration", &p->lock,
			       READ_ONCE(p->phase) >= PEER_READY))
		return false;
	if (READ_ONCE(p->phase) == PEER_READY)
		return true;
	if (phase != PEER_PINNING)
		peer_violation(p->client, "invalidate_early",
			       "invalidation of region %llu, whose dma_map failed", p->id);
	return false;
}

static void peer_umem_invalidate(struct peer_umem *p)
{
	if (!peer_wait_ready(p))
		return;
	if (p->b13_stuck) {
		/* A real server would wait for ever instead of returning. */
		peer_count(PEER_b13_hangs, 1);
		return;
	}
	might_lock_nested(&p->lock.mutex, PEER_LOCK_LATER);
	if (!peer_wait_or_tell(p->client, p->id, "lock", &p->lock,
			       mutex_trylock(&p->lock.mutex)))
		return;
	if (p->mapped) {
		if (p->invalidate)
			p->invalidate(p->umem, p->invalidate_priv);
		peer_table_check_mapped(p);
		peer_umem_unmap(p, p->client->unmaps);
		p->mapped = false;
		peer_count(PEER_revoked_umems, 1);
	} else {
		peer_count(PEER_invalidations_late, 1);
	}
	peer_unlock(&p->lock);
}

static void peer_invalidate_ticket(struct peer_client *client, u64 ticket)
{
	struct peer_umem *p;

	xa_lock(&client->umems);
	p = xa_load(&client->umems, ticket);
	if (p) {
		kref_get(&p->kref);
		atomic_inc(&p->in_flight);
	}
	xa_unlock(&client->umems);
	if (!p) {
		peer_count(PEER_invalidations_unknown, 1);
		return;
	}
	if (peer_in_call(p)) {
		peer_violation(client, "reentry",
			       "region %llu invalidated from inside an operation on it: real servers hang",
			       p->id);
	} else {
		peer_hold(PEER_HOLD_invalidate);
		peer_umem_invalidate(p);
	}
	atomic_dec(&p->in_flight);
	kref_put(&p->kref, peer_umem_free);
}

/*
 * Activates a region in G2, which holds no lock while a client works. If an invalidation comes
 * before the activation, the activation fails, and nothing else happens. A later invalidation does
 * the whole deregistration, during the client's call to invalidate. But if the user's thread is
 * already deregistering, the invalidation only waits until that thread has taken the ticket back,
 * and then returns.
 */
int peer_g2_activate(struct peer_umem *p, umem_invalidate_func_t func, void *priv)
{
	struct peer_lock *lock = &p->client->lock;
	int err = 0;

	mutex_lock(&lock->mutex);
	if (p->invalidated_early) {
		err = -EINVAL;
	} else {
		p->invalidate = func;
		p->invalidate_priv = priv;
	}
	peer_unlock(lock);
	return err;
}

/* Begins the deregistration by the user, unless an invalidation already ends the region. */
void peer_g2_begin_dereg(struct peer_umem *p)
{
	if (p->dereg_begun)
		return;
	p->dereg_begun = true;
	if (atomic_inc_return(&p->ending) > 1)
		wait_event(p->lock.wait, READ_ONCE(p->phase) == PEER_ENDED);
	else
		peer_hold(PEER_HOLD_stop);
}

void peer_g2_dereg(struct peer_umem *p)
{
	struct peer_lock *lock = &p->client->lock;

	peer_g2_begin_dereg(p);
	if (READ_ONCE(p->phase) == PEER_ENDED)
		return;
	mutex_lock(&lock->mutex);
	/*
	 * After an early invalidation, the check is left out, because the client may have undone
	 * its mapping.
	 */
	if (!p->invalidated_early)
		peer_table_check_mapped(p);
	peer_umem_forget(p);
	peer_unlock(lock);
	peer_umem_unmap(p, false);
	peer_umem_release(p);
}

/*
 * Does the whole deregistration of a region during an invalidation. The lock of the tickets is
 * held.
 */
static void peer_g2_end(struct peer_umem *p)
{
	p->invalidate(p->umem, p->invalidate_priv);
	peer_table_check_mapped(p);
	peer_umem_forget(p);
	peer_umem_unmap(p, false);
	peer_umem_release(p);
	peer_count(PEER_ended_in_callback, 1);
	peer_count(PEER_revoked_umems, 1);
	peer_set_phase(p, PEER_ENDED);
}

static void peer_g2_invalidate(struct peer_client *client, u64 ticket)
{
	struct peer_lock *lock = &client->lock;
	struct peer_umem *p;

	peer_hold(PEER_HOLD_invalidate);
	might_lock(&lock->mutex);
	if (!peer_wait_or_tell(client, ticket, "turn", lock, mutex_trylock(&lock->mutex)))
		return;
	p = xa_load(&client->umems, ticket);
	if (!p) {
		peer_count(PEER_invalidations_unknown, 1);
		peer_unlock(lock);
		return;
	}
	kref_get(&p->kref);
	if (!p->invalidate) {
		peer_count(PEER_invalidations_premature, 1);
		p->invalidated_early = true;
		peer_unlock(lock);
	} else if (atomic_inc_return(&p->ending) == 1) {
		peer_g2_end(p);
		peer_unlock(lock);
	} else {
		peer_unlock(lock);
		peer_count(PEER_invalidations_late, 1);
		peer_wait_or_tell(client, ticket, "deregistration", &p->lock,
				  READ_ONCE(p->forgotten));
	}
	kref_put(&p->kref, peer_umem_free);
}

static bool peer_is_atomic(void)
{
	return irqs_disabled() || rcu_preempt_depth() ||
	       (IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible());
}

static bool peer_ticket_possible(struct peer_client *client, u64 ticket)
{
	if (peer_is_g2(client))
		return ticket && ticket < READ_ONCE(client->next_ticket);
	return ticket < PEER_NO_TICKET;
}

/* Invalidates a region. Clients call this function when they lose memory. */
int peer_invalidate(void *handle, u64 core_context)
{
	u64 began = get_cycles();
	struct peer_client *client = peer_client_enter(handle);

	if (!client) {
		peer_violation(NULL, "bad_handle",
			       "invalidation through %p, which is not registered", handle);
		return 0;
	}
	if (peer_is_atomic()) {
		peer_violation(client, "invalidate_atomic",
			       "invalidation of region %llu where it may not sleep",
			       core_context);
	} else if (!peer_ticket_possible(client, core_context)) {
		peer_violation(client, "invalidate_ticket",
			       "invalidation with %#llx, a ticket never given out",
			       core_context);
	} else {
		atomic64_inc(&client->stats[PEER_free_callbacks]);
		peer_count(PEER_live_invalidations, 1);
		if (peer_is_g2(client))
			peer_g2_invalidate(client, core_context);
		else
			peer_invalidate_ticket(client, core_context);
		peer_count(PEER_live_invalidations, -1);
	}
	peer_client_leave(client);
	peer_clock(PEER_OP_invalidate, get_cycles() - began);
	return 0;
}
