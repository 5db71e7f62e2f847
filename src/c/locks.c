// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Locks, and functions to wait for a change of a registration's phase. The locks are in C, because
 * the size of a lock depends on the kernel's configuration, which Rust does not know.
 */
#include <linux/atomic.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "compat.h"
#include "nvpm.h"

static DEFINE_SPINLOCK(nvpm_registry_lock);
static DEFINE_SPINLOCK(nvpm_pairs_lock);

/* This is not an array, because kernels with UBSAN would check the index at each call. */
static spinlock_t *nvpm_spinlock(enum nvpm_lock_name name)
{
	static_assert(NVPM_LOCKS == 2);
	return name == NVPM_LOCK_PAIRS ? &nvpm_pairs_lock : &nvpm_registry_lock;
}

void nvpm_lock(enum nvpm_lock_name name)
{
	spin_lock(nvpm_spinlock(name));
}

void nvpm_unlock(enum nvpm_lock_name name)
{
	spin_unlock(nvpm_spinlock(name));
}

/* The read-write semaphore is in C also because no version of the kernel crate has one. */
static DECLARE_RWSEM(nvpm_unpin_rwsem);

void nvpm_pin_lock(void)
{
	down_read(&nvpm_unpin_rwsem);
}

void nvpm_pin_unlock(void)
{
	up_read(&nvpm_unpin_rwsem);
}

void nvpm_unpin_lock(void)
{
	down_write(&nvpm_unpin_rwsem);
}

void nvpm_unpin_unlock(void)
{
	up_write(&nvpm_unpin_rwsem);
}

/*
 * All registrations share one queue, because threads hardly ever wait. CondVar of the kernel crate
 * is not used, because each record would need one and would be larger.
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
