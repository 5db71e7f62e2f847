// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The kernel of the host's tests: what include/linux/host.h declares. */
#include <stdarg.h>

#include "host.h"

/* Threads of the tests look at these, each at its own. */
static __thread char host_log[1024];
static __thread struct host_wait *host_waiting;
static __thread uint host_locks;
static long host_live;
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

void host_bug(void)
{
	abort();
}

/* Pieces of memory that nobody has freed. */
long host_live_memory(void)
{
	return __atomic_load_n(&host_live, __ATOMIC_RELAXED);
}

/* The @number-th allocation of this thread from now on fails; 0: none does. */
void host_fail(long number)
{
	host_fail_at = number;
}

void *host_alloc(size_t size)
{
	if (host_locks)
		host_bug(); /* it may sleep */
	if (host_fail_at && !--host_fail_at)
		return NULL;
	__atomic_fetch_add(&host_live, 1, __ATOMIC_RELAXED);
	return malloc(size);
}

void host_free(void *memory)
{
	if (!memory)
		return;
	__atomic_fetch_sub(&host_live, 1, __ATOMIC_RELAXED);
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
		host_bug();
	host_locks++;
}

void spin_unlock(spinlock_t *lock)
{
	host_locks--;
	if (pthread_mutex_unlock(&lock->mutex))
		host_bug();
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
		host_bug();
	pthread_mutex_lock(&queue->mutex);
	wait->queue = queue;
	wait->times = queue->times;
	pthread_mutex_unlock(&queue->mutex);
	host_waiting = wait;
}

void schedule(void)
{
	struct host_wait *wait = host_waiting;

	if (host_locks)
		host_bug();
	if (!wait)
		return;
	pthread_mutex_lock(&wait->queue->mutex);
	while (wait->times == wait->queue->times)
		pthread_cond_wait(&wait->queue->woken, &wait->queue->mutex);
	pthread_mutex_unlock(&wait->queue->mutex);
}

void finish_wait(wait_queue_head_t *queue, struct host_wait *wait)
{
	if (wait->queue != queue)
		host_bug();
	host_waiting = NULL;
}

void wake_up_all(wait_queue_head_t *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->times++;
	pthread_cond_broadcast(&queue->woken);
	pthread_mutex_unlock(&queue->mutex);
}
