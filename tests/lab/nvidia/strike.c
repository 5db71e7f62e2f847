// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Freeing from another task, at a moment of the test's choice.
 *
 * GPU memory may be freed at any time, by any task: by another thread of the
 * process, or by the real driver's deferred-close kthread, "nv_queue", which
 * has no address space and another tgid. A strike is such a free, aimed at one
 * point in a client's dealings with the driver. It is nothing but
 * sim_alloc_free() of the memory in question, run by a kworker.
 *
 * At the moments called in_ and before_ the call that is struck waits for the
 * free to be over, but for no longer than "strike_wait_ms": a client may well
 * make its callback wait for the very call. The real driver would not wait
 * either. At the moments called after_ nothing is waited for, and the free
 * starts "strike_delay_ms" later, or when "strike_hold" is back at zero.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "sim.h"

struct sim_blow {
	struct kref ref;
	struct delayed_work work;
	struct completion done;
	struct sim_alloc *alloc;
};

static struct workqueue_struct *nv_queue;

static void sim_blow_destroy(struct kref *ref)
{
	kfree(container_of(ref, struct sim_blow, ref));
}

static void sim_blow_work(struct work_struct *work)
{
	struct sim_blow *blow = container_of(to_delayed_work(work),
					     struct sim_blow, work);

	while (READ_ONCE(sim_knobs.strike_hold))
		msleep(20);
	sim_alloc_free(blow->alloc);
	complete(&blow->done);
	sim_add(SIM_LIVE_STRIKES, -1);
	/* May be what keeps this module: exit waits for this function. */
	sim_alloc_put(blow->alloc);
	kref_put(&blow->ref, sim_blow_destroy);
}

/* No lock may be held. @alloc is the caller's, or NULL. */
void sim_strike(enum sim_moment now, struct sim_alloc *alloc)
{
	bool wait = now != SIM_STRIKE_AFTER_GET &&
		    now != SIM_STRIKE_AFTER_DMA_MAP &&
		    now != SIM_STRIKE_AFTER_DMA_UNMAP;
	struct sim_blow *blow;
	u32 ms;

	if (!alloc || !sim_moment_is(now))
		return;
	blow = kzalloc_obj(*blow);
	if (!blow)
		return;

	kref_init(&blow->ref);
	kref_get(&blow->ref);
	INIT_DELAYED_WORK(&blow->work, sim_blow_work);
	init_completion(&blow->done);
	sim_alloc_get(alloc);
	blow->alloc = alloc;
	sim_add(SIM_STRIKES, 1);
	sim_add(SIM_LIVE_STRIKES, 1);

	ms = wait ? 0 : READ_ONCE(sim_knobs.strike_delay_ms);
	queue_delayed_work(nv_queue, &blow->work, msecs_to_jiffies(ms));
	ms = READ_ONCE(sim_knobs.strike_wait_ms);
	if (wait)
		wait_for_completion_timeout(&blow->done, msecs_to_jiffies(ms));
	kref_put(&blow->ref, sim_blow_destroy);
}

/* Free it from the worker. */
void sim_free_queue(struct sim_alloc *alloc)
{
	sim_alloc_get(alloc);
	if (!queue_work(nv_queue, &alloc->work))
		sim_alloc_put(alloc);
}

int sim_strike_init(void)
{
	nv_queue = alloc_workqueue("nv_queue", WQ_UNBOUND, 0);
	return nv_queue ? 0 : -ENOMEM;
}

void sim_strike_exit(void)
{
	destroy_workqueue(nv_queue);
}
