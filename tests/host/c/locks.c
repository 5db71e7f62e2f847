// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the unpin lock and the queue of threads that wait for a phase. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

TEST(a_table_has_one_lock)
{
	nvpm_lock(NVPM_LOCK_REGISTRY);
	/*
	 * The two tables have different locks, so this thread can take the second lock while it
	 * holds the first one.
	 */
	nvpm_lock(NVPM_LOCK_PAIRS);
	STUCK(nvpm_lock(NVPM_LOCK_REGISTRY));
	STUCK(nvpm_lock(NVPM_LOCK_PAIRS));
	nvpm_unlock(NVPM_LOCK_REGISTRY);
	nvpm_lock(NVPM_LOCK_REGISTRY);
	STUCK(nvpm_lock(NVPM_LOCK_PAIRS));
	nvpm_unlock(NVPM_LOCK_PAIRS);
	nvpm_unlock(NVPM_LOCK_REGISTRY);
	/* The caller may sleep, because it holds no spin lock. */
	nvpm_unpin_lock();
}

TEST(many_pin_at_once)
{
	nvpm_pin_lock();
	nvpm_pin_lock();
	STUCK(nvpm_unpin_lock());
	nvpm_pin_unlock();
	STUCK(nvpm_unpin_lock());
	nvpm_pin_unlock();
	nvpm_unpin_lock();
}

TEST(one_unpins_alone)
{
	nvpm_unpin_lock();
	STUCK(nvpm_unpin_lock());
	STUCK(nvpm_pin_lock());
	nvpm_unpin_unlock();
	nvpm_pin_lock();
}

static u32 seen;
static int gone_on;

static void waits(void)
{
	nvpm_phase_wait(seen);
	gone_on++;
}

TEST(all_who_wait_are_woken)
{
	seen = nvpm_phase_count();
	run_thread(waits);
	run_thread(waits);
	SAME(0, gone_on);
	nvpm_phase_wake();
	SAME(2, gone_on);
}

TEST(who_comes_after_the_wake_does_not_wait)
{
	seen = nvpm_phase_count();
	nvpm_phase_wake();
	run_thread(waits);
	SAME(1, gone_on);
	TRUE(nvpm_phase_count() != seen);
}

TEST(the_count_begins_anew_some_day)
{
	/*
	 * The waiting thread has read the largest possible count. Then the count has wrapped around
	 * to a smaller number.
	 */
	seen = nvpm_phase_count() - 1;
	nvpm_phase_wake();
	run_thread(waits);
	SAME(1, gone_on);
}

TEST(the_next_wake_wakes_the_next)
{
	seen = nvpm_phase_count();
	nvpm_phase_wake();
	seen = nvpm_phase_count();
	run_thread(waits);
	SAME(0, gone_on);
	nvpm_phase_wake();
	SAME(1, gone_on);
}
