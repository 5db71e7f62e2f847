// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Locks, and waiting for the phases of registrations. The locks are in C, because Rust does not
 * know their size.
 */
#include <linux/atomic.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "nvpm.h"

static spinlock_t nvpm_locks[NVPM_LOCKS] = {
	[NVPM_LOCK_REGISTRY] = __SPIN_LOCK_UNLOCKED(nvpm_locks[NVPM_LOCK_REGISTRY]),
	[NVPM_LOCK_PAIRS] = __SPIN_LOCK_UNLOCKED(nvpm_locks[NVPM_LOCK_PAIRS]),
};

void nvpm_lock(enum nvpm_lock_name name)
{
	spin_lock(&nvpm_locks[name]);
}

void nvpm_unlock(enum nvpm_lock_name name)
{
	spin_unlock(&nvpm_locks[name]);
}

/* This lock is in C, because no version of the kernel crate has a read-write semaphore. */
static DECLARE_RWSEM(nvpm_unpin_rwsem);

void nvpm_unpin_lock(bool exclusive)
{
	if (exclusive)
		down_write(&nvpm_unpin_rwsem);
	else
		down_read(&nvpm_unpin_rwsem);
}

void nvpm_unpin_unlock(bool exclusive)
{
	if (exclusive)
		up_write(&nvpm_unpin_rwsem);
	else
		up_read(&nvpm_unpin_rwsem);
}

/*
 * All registrations share a queue, because threads hardly ever wait. The crate's CondVar would
 * have to be in each record, and would make each record larger.
 */
static DECLARE_WAIT_QUEUE_HEAD(nvpm_phase_queue);
static atomic_t nvpm_phase_wakes;

u32 nvpm_phase_count(void)
{
	return atomic_read(&nvpm_phase_wakes);
}

void nvpm_phase_wait(u32 count)
{
	wait_event(nvpm_phase_queue, (u32)atomic_read(&nvpm_phase_wakes) != count);
}

void nvpm_phase_wake(void)
{
	atomic_inc(&nvpm_phase_wakes);
	wake_up_all(&nvpm_phase_queue);
}
