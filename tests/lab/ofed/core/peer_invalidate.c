// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Invalidations: a client says that a region loses its memory. From G3A on; for
 * earlier servers see peer_g2.c.
 */
#include <linux/preempt.h>
#include <linux/timex.h>
#include <rdma/ib_umem.h>

#include "peer_server.h"

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

void peer_tell_deadlock(struct peer_umem *p, const char *what)
{
	char holder[80];

	if (!peer_describe_call(p, holder, sizeof(holder)))
		strscpy(holder, "nobody in the client", sizeof(holder));
	peer_violation(p->client, PEER_INVALIDATE_DEADLOCK,
		       "invalidation of region %llu gave up waiting for its %s after %d s; there now: %s",
		       p->id, what, PEER_DEADLOCK_SECONDS, holder);
}

/*
 * Waits until the region is mapped. A client may call the moment that its
 * dma_map has decided to succeed, never before.
 */
static bool peer_wait_ready(struct peer_umem *p)
{
	enum peer_phase phase = READ_ONCE(p->phase);
	bool ready;

	if (phase == PEER_READY)
		return true;
	if (phase == PEER_PINNING) {
		peer_violation(p->client, PEER_INVALIDATE_EARLY,
			       "invalidation of region %llu before its dma_map", p->id);
	}
	peer_count(PEER_LIVE_WAITS, 1);
	ready = wait_event_timeout(p->wait, READ_ONCE(p->phase) >= PEER_READY,
				   PEER_DEADLOCK_SECONDS * HZ);
	peer_count(PEER_LIVE_WAITS, -1);
	if (!ready) {
		peer_tell_deadlock(p, "registration");
		return false;
	}
	if (READ_ONCE(p->phase) == PEER_READY)
		return true;
	if (phase != PEER_PINNING)
		peer_violation(p->client, PEER_INVALIDATE_EARLY,
			       "invalidation of region %llu, whose dma_map failed", p->id);
	return false;
}

/* As mutex_lock(), but a deadlock in the client does not take the machine. */
static bool peer_lock_or_tell(struct peer_umem *p)
{
	bool locked;

	might_lock_nested(&p->mapping_lock, PEER_LOCK_LATER);
	peer_count(PEER_LIVE_WAITS, 1);
	locked = wait_event_timeout(p->wait, mutex_trylock(&p->mapping_lock),
				    PEER_DEADLOCK_SECONDS * HZ);
	peer_count(PEER_LIVE_WAITS, -1);
	if (!locked)
		peer_tell_deadlock(p, "lock");
	return locked;
}

static void peer_umem_invalidate(struct peer_umem *p)
{
	struct peer_client *client = p->client;

	if (!peer_wait_ready(p))
		return;
	if (p->b13_stuck) {
		/* A real one never returns. */
		peer_count(PEER_B13_HANGS, 1);
		return;
	}
	if (!peer_lock_or_tell(p))
		return;
	if (p->state != PEER_MAPPED) {
		peer_count(PEER_INVALIDATIONS_LATE, 1);
		peer_unlock(p);
		return;
	}
	if (p->invalidate)
		p->invalidate(p->umem, p->invalidate_priv);
	peer_table_check_mapped(p);
	if (client->unmaps) {
		peer_umem_invalidated(p);
		p->state = PEER_INVALIDATED;
	} else {
		peer_umem_unmap(p);
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
			       "region %llu invalidated from inside an operation on it: real servers hang",
			       p->id);
	} else {
		peer_hold(PEER_AT_INVALIDATE);
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

static bool peer_ticket_possible(struct peer_client *client, u64 ticket)
{
	if (peer_is_g2(client))
		return ticket && ticket < READ_ONCE(client->next_ticket);
	return ticket < PEER_NO_TICKET;
}

/* What clients get as their invalidate callback. */
int peer_invalidate(void *handle, u64 core_context)
{
	u64 began = get_cycles();
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
	if (!peer_ticket_possible(client, core_context)) {
		peer_violation(client, PEER_INVALIDATE_TICKET,
			       "invalidation with %#llx, a ticket never given out",
			       core_context);
		goto out;
	}
	peer_count(PEER_LIVE_INVALIDATIONS, 1);
	if (peer_is_g2(client))
		peer_g2_invalidate(client, core_context);
	else
		peer_invalidate_ticket(client, core_context);
	peer_count(PEER_LIVE_INVALIDATIONS, -1);
out:
	peer_client_leave(client);
	peer_clock(PEER_INVALIDATE, get_cycles() - began);
	return 0;
}
