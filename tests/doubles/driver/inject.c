// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Injects frees: lets another task free memory, at a point that the test chooses or at random.
 *
 * In reality, any task may free GPU memory at any time. An injected free happens at one point of a
 * client's call. At the points whose names begin with in_ or before_, the call waits until the
 * memory is freed, or until the free itself waits, because a client's callback may wait for the end
 * of this call. At the points whose names begin with after_, the call does not wait. The free
 * starts at once, or when "inject_hold" is zero again.
 *
 * "inject_from" chooses the task that frees, with the same words as "free_from" (vidmem.c): task is
 * another thread of the process that owns the memory; close is the same thread, but it frees by
 * munmap. All words except kthread need a thread that waits in LAB_GPU_INJECTOR (injector.c). If no
 * thread waits, the injected free stays outstanding, and is reported.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "sim.h"

/* A blow: a free that another task has to make. */
struct sim_blow {
	struct kref ref;
	struct list_head node;		/* of outstanding, while it waits */
	struct work_struct work;
	struct completion done;
	struct sim_alloc *alloc;
	enum sim_freer from;
	bool after;			/* the call does not wait for the free */
	u32 pause_us;
	struct task_struct *task;	/* the freeing task, as soon as it is known */
};

static struct workqueue_struct *nv_queue;

/* The blows for which no injector has come yet, the oldest first. */
static LIST_HEAD(outstanding);
static DEFINE_SPINLOCK(outstanding_lock);
static DECLARE_WAIT_QUEUE_HEAD(injectors);

/* ---- the point of a free ------------------------------------------------- */

static atomic64_t sim_injections[SIM_after_put + 1];

static DEFINE_SPINLOCK(plan_lock);
DECLARE_WAIT_QUEUE_HEAD(sim_held);
static struct {
	enum sim_point point;
	u32 skip;
	u32 permille;		/* of all passings of any point; 0: not at random */
} plan;

s64 sim_injected(enum sim_point point)
{
	return atomic64_read(&sim_injections[point]);
}

/* Tells whether the memory is to be freed at this point. */
static bool sim_point_is(enum sim_point now)
{
	bool hit = false;

	if (READ_ONCE(plan.permille))
		return sim_random() % 1000 < READ_ONCE(plan.permille);
	if (READ_ONCE(plan.point) != now)
		return false;
	spin_lock(&plan_lock);
	if (plan.point == now) {
		hit = !plan.skip--;
		if (hit)
			WRITE_ONCE(plan.point, SIM_none);
	}
	spin_unlock(&plan_lock);
	return hit;
}

int sim_inject_plan(const char *words)
{
	unsigned int nth = 1, permille = 0;
	char name[32];
	int point = SIM_none;

	if (sscanf(words, "random %u", &permille) == 1) {
		if (permille > 1000)
			return -EINVAL;
	} else {
		if (sscanf(words, "%31s %u", name, &nth) < 1 || !nth)
			return -EINVAL;
		point = match_string(sim_point_names, SIM_after_put + 1, name);
		if (point < 0)
			return point;
	}
	spin_lock(&plan_lock);
	plan.skip = nth - 1;
	WRITE_ONCE(plan.point, point);
	WRITE_ONCE(plan.permille, permille);
	spin_unlock(&plan_lock);
	return 0;
}

/* Waits until the test ends the hold, but at most a minute, because the test may forget. */
static void sim_hold(enum sim_point now)
{
	if (sim_knob(hold) != now)
		return;
	sim_add(SIM_live_held, 1);
	if (!wait_event_timeout(sim_held, sim_knob(hold) != now, 60 * HZ))
		pr_warn("a call was held at %s for a minute and goes on\n",
			sim_point_names[now]);
	sim_add(SIM_live_held, -1);
}

/* ---- the task that frees ------------------------------------------------- */

static void sim_blow_destroy(struct kref *ref)
{
	struct sim_blow *blow = container_of(ref, struct sim_blow, ref);

	if (blow->task)
		put_task_struct(blow->task);
	kfree(blow);
}

/* Ends a blow, because the freeing task has freed the memory. Drops the task's reference. */
static void sim_blow_end(struct sim_blow *blow)
{
	struct sim_alloc *alloc = blow->alloc;

	complete(&blow->done);
	sim_add(SIM_live_injections, -1);
	/*
	 * The allocation may have the last reference to this module. The module's exit waits for
	 * the end of this function.
	 */
	sim_alloc_put(alloc);
	kref_put(&blow->ref, sim_blow_destroy);
}

/* Frees the memory that a blow names. */
static void sim_blow_land(struct sim_blow *blow)
{
	struct sim_alloc *alloc = blow->alloc;

	/* Pairs with sim_blow_waits(), which must not see the task without the reference. */
	smp_store_release(&blow->task, get_task_struct(current));
	if (blow->from != SIM_close)
		sim_alloc_free(alloc);
	else if (sim_alloc_free_in_close(alloc))
		vm_munmap(alloc->va, alloc->size);
	sim_blow_end(blow);
}

/* Cancels the outstanding frees of memory that was freed by other means. */
void sim_inject_moot(struct sim_alloc *alloc)
{
	struct sim_blow *blow, *next;
	LIST_HEAD(moot);

	spin_lock(&outstanding_lock);
	list_for_each_entry_safe(blow, next, &outstanding, node)
		if (blow->alloc == alloc)
			list_move(&blow->node, &moot);
	spin_unlock(&outstanding_lock);
	list_for_each_entry_safe(blow, next, &moot, node) {
		list_del_init(&blow->node);
		sim_blow_end(blow);
	}
}

static void sim_blow_work(struct work_struct *work)
{
	struct sim_blow *blow = container_of(work, struct sim_blow, work);
	struct sim_alloc *alloc = blow->alloc;

	if (blow->pause_us)
		usleep_range(blow->pause_us, blow->pause_us + 50);
	while (blow->after && sim_knob(inject_hold))
		msleep(20);
	if (blow->from == SIM_kthread) {
		sim_blow_land(blow);
		return;
	}
	sim_alloc_get(alloc);
	spin_lock(&outstanding_lock);
	list_add_tail(&blow->node, &outstanding);
	spin_unlock(&outstanding_lock);
	wake_up_all(&injectors);
	/*
	 * If another task frees the memory at this moment, either that task finds the blow on the
	 * list and cancels it, or this thread sees here that the memory is freed.
	 */
	if (READ_ONCE(alloc->state) == SIM_ALLOC_GONE)
		sim_inject_moot(alloc);
	sim_alloc_put(alloc);
}

/* Returns the oldest blow that the calling task may execute, or NULL. */
static struct sim_blow *sim_blow_take(void)
{
	struct sim_blow *blow, *mine = NULL;
	bool own;

	spin_lock(&outstanding_lock);
	list_for_each_entry(blow, &outstanding, node) {
		own = blow->alloc->tgid == task_tgid_nr(current);
		if (own != (blow->from == SIM_process)) {
			list_del_init(&blow->node);
			mine = blow;
			break;
		}
	}
	spin_unlock(&outstanding_lock);
	return mine;
}

/*
 * Executes one blow. Each call of LAB_GPU_INJECTOR executes only one, because the kernel finishes a
 * munmap only when the thread returns to user space.
 */
int sim_injector(void)
{
	struct sim_blow *blow;
	int ret = wait_event_interruptible(injectors, (blow = sim_blow_take()));

	if (!ret)
		sim_blow_land(blow);
	return ret;
}

/* Makes a blow with two references, for the caller and for the freeing task. */
static struct sim_blow *sim_blow_new(struct sim_alloc *alloc, enum sim_freer from)
{
	struct sim_blow *blow = kzalloc_obj(*blow, GFP_KERNEL | __GFP_NOFAIL);

	kref_init(&blow->ref);
	kref_get(&blow->ref);
	INIT_LIST_HEAD(&blow->node);
	INIT_WORK(&blow->work, sim_blow_work);
	init_completion(&blow->done);
	sim_alloc_get(alloc);
	blow->alloc = alloc;
	blow->from = from;
	sim_add(SIM_live_injections, 1);
	return blow;
}

/* Lets another task free the memory. @from chooses the task. If @wait, waits for the free. */
void sim_free_elsewhere(struct sim_alloc *alloc, enum sim_freer from, bool wait)
{
	struct sim_blow *blow = sim_blow_new(alloc, from);

	queue_work(nv_queue, &blow->work);
	if (wait)
		wait_for_completion_killable(&blow->done);
	kref_put(&blow->ref, sim_blow_destroy);
}

/* ---- injected frees --------------------------------------------------------- */

/* Tells whether the freeing task sleeps in a client's callback. */
static bool sim_blow_waits(const struct sim_blow *blow)
{
	/* Pairs with sim_blow_land(). */
	struct task_struct *task = smp_load_acquire(&blow->task);

	return task && READ_ONCE(blow->alloc->telling) &&
	       READ_ONCE(task->__state) != TASK_RUNNING;
}

/*
 * Waits until the memory is freed, or until two checks in a row have found the freeing task asleep
 * in a callback. The limit "inject_wait_ms" matters only if no injector comes.
 */
static void sim_blow_await(struct sim_blow *blow)
{
	unsigned long limit = jiffies + msecs_to_jiffies(sim_knob(inject_wait_ms));
	int seen = 0;

	while (!wait_for_completion_timeout(&blow->done, 1)) {
		seen = sim_blow_waits(blow) ? seen + 1 : 0;
		if (seen == 2 || time_after(jiffies, limit))
			break;
	}
}

/* Injects a free at this point, if one is due. The caller must hold no lock. @alloc may be NULL. */
void sim_inject(enum sim_point now, struct sim_alloc *alloc)
{
	struct sim_blow *blow;

	if (alloc && sim_point_is(now)) {
		sim_add(SIM_injections, 1);
		atomic64_inc(&sim_injections[now]);
		blow = sim_blow_new(alloc, sim_knob(inject_from));
		blow->after = strstarts(sim_point_names[now], "after_");
		/*
		 * Because of the random pause, the free may happen during any later step of the
		 * client.
		 */
		if (blow->after && READ_ONCE(plan.permille))
			blow->pause_us = sim_random() % 4096;
		queue_work(nv_queue, &blow->work);
		if (!blow->after)
			sim_blow_await(blow);
		kref_put(&blow->ref, sim_blow_destroy);
	}
	sim_hold(now);
}

/* Injects a free of a pin's allocation. The pin may have ended, or may be NULL. */
void sim_inject_pin(enum sim_point now, struct sim_pin *pin)
{
	struct sim_alloc *alloc = sim_pin_alloc(pin);

	sim_inject(now, alloc);
	if (alloc)
		sim_alloc_put(alloc);
}

int sim_inject_init(void)
{
	nv_queue = alloc_workqueue("nv_queue", WQ_UNBOUND, 0);
	return nv_queue ? 0 : -ENOMEM;
}

/*
 * Ends the queue of frees. No free is outstanding, because a free keeps its memory allocated, and
 * allocated memory keeps this module loaded.
 */
void sim_inject_exit(void)
{
	destroy_workqueue(nv_queue);
}
