// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The resource manager's API lock.
 *
 * In the real driver, get_pages (twice), put_pages and dma_map_pages take the lock for
 * writing, and a task that frees GPU memory holds it until the client's free callback has
 * returned. The lock is not recursive: a call from inside the callback fails an assertion
 * and returns -EIO. dma_unmap_pages and the two no-op frees do not take the lock.
 *
 * The simulation adds two checks. A task that waits too long for the same owner counts as
 * half of a deadlock: a violation is recorded, and calls that can fail do so, which lets the
 * run end. Lockdep also knows the lock, so it reports a client whose callback takes a lock
 * that the client also holds in a call that waits for this lock.
 *
 * Lockdep is not told of calls about persistent pages, because it would report a false
 * deadlock. The RDMA core holds the lock of a region when it asks a client to map, and the
 * client then calls the driver; in the callback, the core waits for the lock of another
 * region. Lockdep takes the two locks for one. But no callback waits for a region that is
 * not mapped yet, or whose pages persist.
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
		/* If the owner changes, the lock is only busy, and there is no deadlock. */
	} while (turn != READ_ONCE(api.turn) || !READ_ONCE(api.owner));

	sim_violation("stall",
		      "%s waited %d s for the API lock that another task holds for %s: the free callback seems to wait for its caller",
		      what, SIM_API_SECONDS, READ_ONCE(api.owner_what));
	if (ordered)
		lock_map_release(&api.map);
	return -EIO;
}

/* Takes the lock for callers that cannot fail. The owner never calls this function. */
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
