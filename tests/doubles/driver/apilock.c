// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The resource manager's API lock.
 *
 * In the real driver, get_pages (twice), put_pages and dma_map_pages take the lock for writing, and
 * a task that frees GPU memory holds the lock until the client's free callback has returned. The
 * lock is not recursive: if the callback calls one of these functions, an assertion fails and the
 * function returns -EIO. dma_unmap_pages and the two free functions, which do nothing, do not take
 * the lock.
 *
 * The simulation adds two checks. First, a task that waits too long for one owner is taken as part
 * of a deadlock: the simulation records a violation, and lets the call fail if it can, so that the
 * run ends. Second, lockdep watches the lock, so it reports a client that takes some lock in its
 * callback and also holds that lock while it calls the driver.
 *
 * Lockdep does not watch calls about persistent pages, because it would report a deadlock that
 * cannot happen. The RDMA core holds the lock of a region when it asks a client to map, and the
 * client then calls the driver. In a callback, the core waits for the lock of another region.
 * Lockdep does not distinguish the two locks. But no callback waits for a region that is not mapped
 * yet, or whose pages are pinned persistently.
 */
#include <linux/jiffies.h>
#include <linux/lockdep.h>
#include <linux/semaphore.h>

#include "sim.h"

/* The time for which a task may wait for one owner of the API lock. */
#define SIM_API_SECONDS 30

static struct {
	struct semaphore sem;
	struct lockdep_map map;
	bool ordered;			/* lockdep was told about the owner */
	u32 turn;			/* the number of owners so far */
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
		/*
		 * A change of the owner shows that the lock is only busy and that there is no
		 * deadlock.
		 */
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
