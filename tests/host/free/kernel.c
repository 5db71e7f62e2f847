// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The kernel of the host's tests: what include/linux/host.h declares. */
#include <stdarg.h>
#include <time.h>

#include "host.h"

/* Each thread has its own. */
static __thread char host_log[1024];
static __thread struct host_wait *host_waiting;
static __thread uint host_locks;
static __thread long host_fail_at;

const char *host_said(void)
{
	return host_log;
}

void host_printk(const char *format, ...)
{
	va_list rest;

	va_start(rest, format);
	vsnprintf(host_log, sizeof(host_log), format, rest);
	va_end(rest);
}

void host_bug(const char *why)
{
	fprintf(stderr, "host: %s\n", why);
	abort();
}

/* The @number-th allocation of this thread from now on fails; 0: none does. */
void host_fail(long number)
{
	host_fail_at = number;
}

void *host_alloc(size_t size)
{
	if (host_locks)
		host_bug("memory is allocated under a lock");
	if (host_fail_at && !--host_fail_at)
		return NULL;
	return malloc(size);
}

void host_free(void *memory)
{
	free(memory);
}

void spin_lock_init(spinlock_t *lock)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&lock->mutex, &attributes);
}

void spin_lock(spinlock_t *lock)
{
	if (pthread_mutex_lock(&lock->mutex))
		host_bug("a lock is taken twice");
	host_locks++;
}

void spin_unlock(spinlock_t *lock)
{
	host_locks--;
	if (pthread_mutex_unlock(&lock->mutex))
		host_bug("a lock is let go that is not held");
}

void init_waitqueue_head(wait_queue_head_t *queue)
{
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->woken, NULL);
	queue->times = 0;
}

void prepare_to_wait(wait_queue_head_t *queue, struct host_wait *wait, int state)
{
	if (state != TASK_UNINTERRUPTIBLE)
		host_bug("a signal would end the waiting");
	if (!host_locks)
		host_bug("in the queue only when the lock is gone: a notification can be lost");
	pthread_mutex_lock(&queue->mutex);
	wait->queue = queue;
	wait->times = queue->times;
	pthread_mutex_unlock(&queue->mutex);
	host_waiting = wait;
}

void schedule(void)
{
	struct host_wait *wait = host_waiting;
	struct timespec limit;

	if (host_locks)
		host_bug("a thread sleeps that holds a lock");
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 60;
	pthread_mutex_lock(&wait->queue->mutex);
	while (wait->times == wait->queue->times)
		if (pthread_cond_timedwait(&wait->queue->woken, &wait->queue->mutex, &limit))
			host_bug("nobody wakes a thread that waits");
	pthread_mutex_unlock(&wait->queue->mutex);
}

void finish_wait(wait_queue_head_t *queue, struct host_wait *wait)
{
	if (wait->queue != queue)
		host_bug("in another queue");
	host_waiting = NULL;
}

void wake_up_all(wait_queue_head_t *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->times++;
	pthread_cond_broadcast(&queue->woken);
	pthread_mutex_unlock(&queue->mutex);
}
