// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How MLNX_OFED 4.0 to 5.0 end a region: what is different from later servers.
 *
 * Nothing is locked while a client works. An invalidation that comes before
 * the driver has activated the region only fails the activation. One that
 * comes later does the whole deregistration itself, in the client's own call;
 * if the user is doing that already, it waits until the ticket is taken back,
 * and returns while the user's thread goes on.
 */
#include "peer_server.h"

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

/* The user's: either this or an invalidation ends the region. */
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
	/* A client that has been told may have undone its mapping. */
	if (!p->invalidated_early)
		peer_table_check_mapped(p);
	peer_umem_forget(p);
	peer_unlock(lock);
	peer_umem_unmap(p, false);
	peer_umem_release(p);
}

/* The invalidation's: everything, with the tickets locked. */
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

void peer_g2_invalidate(struct peer_client *client, u64 ticket)
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
