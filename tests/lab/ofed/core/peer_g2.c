// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Regions as MLNX_OFED 4.0 to 5.0 treat them: what is different from later
 * servers, in registration, deregistration and invalidation.
 *
 * Nothing is locked while a client works. An invalidation that comes before
 * the driver has activated the region only fails the activation. One that
 * comes later does the whole deregistration itself, in the client's own call;
 * if the user is doing that already, it waits until the ticket is taken back,
 * and returns while the user's thread goes on.
 */
#include <rdma/ib_umem.h>

#include "peer_server.h"

/* Every region that could be invalidated gets one, whatever its client wants. */
static int peer_g2_ticket(struct peer_umem *p)
{
	struct peer_client *client = p->client;
	int err;

	if (!p->can_invalidate)
		return 0;
	err = peer_fail(PEER_AT_ID);
	if (err)
		return err;
	mutex_lock(&client->tickets_lock);
	err = xa_insert(&client->umems, client->next_ticket, p, GFP_KERNEL);
	if (!err)
		p->id = client->next_ticket++;
	mutex_unlock(&client->tickets_lock);
	return err;
}

static void peer_g2_unlock(struct peer_client *client)
{
	mutex_unlock(&client->tickets_lock);
	wake_up_all(&client->tickets_wait);
}

/* Takes the ticket back. Who waits for that goes on. */
static void peer_g2_forget(struct peer_umem *p)
{
	lockdep_assert_held(&p->client->tickets_lock);
	if (p->id != PEER_NO_ID)
		xa_erase(&p->client->umems, p->id);
	complete_all(&p->forgotten);
}

static int peer_g2_map(struct peer_umem *p, unsigned long *page_size)
{
	int err = peer_call_get_pages(p);

	if (err)
		return err;
	*page_size = peer_call_get_page_size(p);
	if (!*page_size) {
		peer_violation(p->client, PEER_BAD_PAGE_SIZE,
			       "get_page_size of region %llu said 0: real servers report an error without number",
			       p->id);
		err = -EINVAL;
	} else {
		peer_hold(PEER_AT_MAP);
		err = peer_call_dma_map(p);
	}
	if (err)
		peer_call_put_pages(p);
	return err;
}

/* A failure leaves nothing of the client. */
int peer_g2_setup(struct peer_umem *p)
{
	unsigned long page_size;
	int err = peer_g2_ticket(p);

	if (!err)
		err = peer_g2_map(p, &page_size);
	if (err) {
		mutex_lock(&p->client->tickets_lock);
		peer_g2_forget(p);
		peer_g2_unlock(p->client);
		peer_umem_release(p);
		return err;
	}
	err = peer_umem_mapped(p, page_size);
	if (err)
		peer_g2_dereg(p);
	return err;
}

int peer_g2_activate(struct peer_umem *p, umem_invalidate_func_t func, void *priv)
{
	struct peer_client *client = p->client;
	int err = 0;

	mutex_lock(&client->tickets_lock);
	if (p->invalidated_early) {
		err = -EINVAL;
	} else {
		p->invalidate = func;
		p->invalidate_priv = priv;
	}
	peer_g2_unlock(client);
	return err;
}

/* The user's: either this or an invalidation ends the region. */
void peer_g2_begin_dereg(struct peer_umem *p)
{
	if (p->dereg_begun)
		return;
	p->dereg_begun = true;
	if (atomic_inc_return(&p->ending) > 1) {
		wait_for_completion(&p->ended);
		return;
	}
	peer_hold(PEER_AT_STOP);
}

void peer_g2_dereg(struct peer_umem *p)
{
	struct peer_client *client = p->client;

	peer_g2_begin_dereg(p);
	if (completion_done(&p->ended))
		return;
	mutex_lock(&client->tickets_lock);
	/* A client that has been told may have undone its mapping. */
	if (!p->invalidated_early)
		peer_table_check_mapped(p);
	peer_g2_forget(p);
	peer_g2_unlock(client);
	peer_umem_unmap(p);
	peer_umem_release(p);
}

/* The invalidation's: everything, with the tickets locked. */
static void peer_g2_end(struct peer_umem *p)
{
	p->invalidate(p->umem, p->invalidate_priv);
	peer_table_check_mapped(p);
	peer_g2_forget(p);
	peer_umem_unmap(p);
	peer_umem_release(p);
	peer_count(PEER_ENDED_IN_CALLBACK, 1);
	peer_count(PEER_REVOKED_UMEMS, 1);
	complete_all(&p->ended);
}

static void peer_g2_wait_forgotten(struct peer_umem *p)
{
	bool forgotten;

	peer_count(PEER_INVALIDATIONS_LATE, 1);
	peer_count(PEER_LIVE_WAITS, 1);
	forgotten = wait_for_completion_timeout(&p->forgotten,
						PEER_DEADLOCK_SECONDS * HZ);
	peer_count(PEER_LIVE_WAITS, -1);
	if (!forgotten)
		peer_tell_deadlock(p, "deregistration");
}

/* As mutex_lock(), but a deadlock in the client does not take the machine. */
static bool peer_g2_lock_or_tell(struct peer_client *client)
{
	might_lock(&client->tickets_lock);
	if (wait_event_timeout(client->tickets_wait,
			       mutex_trylock(&client->tickets_lock),
			       PEER_DEADLOCK_SECONDS * HZ))
		return true;
	peer_violation(client, PEER_INVALIDATE_DEADLOCK,
		       "an invalidation gave up waiting for another one after %d s",
		       PEER_DEADLOCK_SECONDS);
	return false;
}

void peer_g2_invalidate(struct peer_client *client, u64 ticket)
{
	struct peer_umem *p;

	atomic64_inc(&client->stats.free_callbacks);
	peer_hold(PEER_AT_INVALIDATE);
	if (!peer_g2_lock_or_tell(client))
		return;
	p = xa_load(&client->umems, ticket);
	if (!p) {
		peer_count(PEER_INVALIDATIONS_UNKNOWN, 1);
		peer_g2_unlock(client);
		return;
	}
	kref_get(&p->kref);
	if (!p->invalidate) {
		peer_count(PEER_INVALIDATIONS_PREMATURE, 1);
		p->invalidated_early = true;
		peer_g2_unlock(client);
	} else if (atomic_inc_return(&p->ending) == 1) {
		peer_g2_end(p);
		peer_g2_unlock(client);
	} else {
		peer_g2_unlock(client);
		peer_g2_wait_forgotten(p);
	}
	kref_put(&p->kref, peer_umem_free);
}
