// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The resource manager's API lock.
 *
 * The real one is taken for writing by get_pages (twice), put_pages and
 * dma_map_pages, and is held by whoever frees GPU memory until the client's
 * free callback has returned. It is not recursive: a call from inside the
 * callback fails an assertion and comes back as -EIO. dma_unmap_pages and the
 * two no-op frees do not take it.
 *
 * Two things are added. A task that waits too long for the same owner counts as half of
 * a deadlock: a violation is recorded, and calls that can fail do so, which lets the run
 * end. And lockdep knows the lock: a lock that the callback takes must not be held in a
 * call that waits for this lock.
 *
 * Of some calls it is not told: those about persistent pages. The RDMA core has the
 * lock of a region in hand when it asks a client to map, who asks the driver then;
 * and waits for the lock of another region in the callback. To lockdep these are
 * one lock, and the two orders a deadlock; but no callback waits for a region that
 * is not mapped yet, or whose pages persist.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/semaphore.h>

#include "sim.h"

/* How long a task may wait for one owner of the API lock. */
#define SIM_API_SECONDS 30

static struct {
	struct semaphore sem;
	struct lockdep_map map;
	bool ordered;			/* lockdep knows of the owner */
	u32 turn;			/* counts owners */
	struct task_struct *owner;
	const char *owner_what;
} api = {
	.sem = __SEMAPHORE_INITIALIZER(api.sem, 1),
};

void sim_api_init(void)
{
	static struct lock_class_key key;

	lockdep_init_map(&api.map, "nvidia_api_lock", &key, 0);
}

bool sim_api_is_mine(void)
{
	return READ_ONCE(api.owner) == current;
}

int sim_api_lock(const char *what, bool ordered)
{
	u32 turn;

	if (sim_api_is_mine()) {
		sim_violation("reentry",
			      "%s called by the task that holds the API lock for %s: calls from inside the free callback fail",
			      what, READ_ONCE(api.owner_what));
		return -EIO;
	}
	if (ordered)
		lock_map_acquire(&api.map);
	do {
		turn = READ_ONCE(api.turn);
		if (!down_timeout(&api.sem, SIM_API_SECONDS * HZ)) {
			WRITE_ONCE(api.turn, api.turn + 1);
			WRITE_ONCE(api.owner_what, what);
			WRITE_ONCE(api.owner, current);
			api.ordered = ordered;
			return 0;
		}
		/* A queue that moves is only a busy one. */
	} while (turn != READ_ONCE(api.turn) || !READ_ONCE(api.owner));

	sim_violation("stall",
		      "%s waited %d s for the API lock that another task holds for %s: the free callback seems to wait for its caller",
		      what, SIM_API_SECONDS, READ_ONCE(api.owner_what));
	if (ordered)
		lock_map_release(&api.map);
	return -EIO;
}

/* For those who cannot fail. Never called by the owner. */
void sim_api_lock_always(const char *what, bool ordered)
{
	while (sim_api_lock(what, ordered))
		;
}

void sim_api_unlock(void)
{
	bool ordered = api.ordered;

	WRITE_ONCE(api.owner, NULL);
	if (ordered)
		lock_map_release(&api.map);
	up(&api.sem);
}
