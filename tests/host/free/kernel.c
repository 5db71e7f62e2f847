// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The kernel of the host's tests: what include/linux/host.h declares. */
#include <linux/sched.h>
#include <stdarg.h>
#include <time.h>

#include "host.h"

/* For a checker that knows locks, not atomic operations. */
#if __has_include(<valgrind/helgrind.h>)
#include <valgrind/helgrind.h>
#else
#define ANNOTATE_HAPPENS_BEFORE(object)
#define ANNOTATE_HAPPENS_AFTER(object)
#endif

/* Each thread has its own. */
static __thread char host_log[1024];
static __thread struct host_wait *host_waiting;
static __thread uint host_locks;
static __thread long host_fail_at;
static __thread long host_allocated;

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

/* How many times this thread has allocated memory. */
long host_allocations(void)
{
	return host_allocated;
}

void *host_alloc(size_t size)
{
	if (host_locks)
		host_bug("memory is allocated under a lock");
	if (host_fail_at && !--host_fail_at)
		return NULL;
	host_allocated++;
	return malloc(size);
}

void host_free(void *memory)
{
	free(memory);
}

void refcount_set(refcount_t *refs, uint count)
{
	__atomic_store_n(&refs->count, count, __ATOMIC_RELAXED);
}

void refcount_inc(refcount_t *refs)
{
	if (!__atomic_fetch_add(&refs->count, 1, __ATOMIC_RELAXED))
		host_bug("one owner more, of none");
}

bool refcount_dec_and_test(refcount_t *refs)
{
	uint before;

	ANNOTATE_HAPPENS_BEFORE(refs);
	before = __atomic_fetch_sub(&refs->count, 1, __ATOMIC_ACQ_REL);
	if (!before)
		host_bug("one owner less, of none");
	if (before != 1)
		return false;
	ANNOTATE_HAPPENS_AFTER(refs);
	return true;
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
	queue->waiting = 0;
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
	__atomic_add_fetch(&queue->waiting, 1, __ATOMIC_RELAXED);
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
	__atomic_sub_fetch(&queue->waiting, 1, __ATOMIC_RELAXED);
	host_waiting = NULL;
}

/* Without a lock, as the kernel's. */
bool waitqueue_active(wait_queue_head_t *queue)
{
	return __atomic_load_n(&queue->waiting, __ATOMIC_RELAXED);
}

void wake_up_all(wait_queue_head_t *queue)
{
	pthread_mutex_lock(&queue->mutex);
	queue->times++;
	pthread_cond_broadcast(&queue->woken);
	pthread_mutex_unlock(&queue->mutex);
}

void *host_zalloc(size_t size)
{
	void *memory = host_alloc(size);

	return memory ? memset(memory, 0, size) : NULL;
}

/* What does not fit is left out. */
static void host_append(char *buf, size_t size, size_t *len, const char *text)
{
	while (*text && *len + 1 < size)
		buf[(*len)++] = *text++;
	if (*len < size)
		buf[*len] = '\0';
}

/* Of the kernel's formats those that the module uses: %s, and %pUb, sixteen bytes. */
int host_scnprintf(char *buf, size_t size, const char *format, ...)
{
	const unsigned char *uuid;
	size_t len = 0;
	va_list rest;
	char part[4];
	int byte;

	va_start(rest, format);
	for (; *format; format++) {
		if (!strncmp(format, "%pUb", 4)) {
			uuid = va_arg(rest, const unsigned char *);
			for (byte = 0; byte < 16; byte++) {
				snprintf(part, sizeof(part), "%s%02x",
					 byte >= 4 && byte <= 10 && byte % 2 == 0 ? "-" : "",
					 uuid[byte]);
				host_append(buf, size, &len, part);
			}
			format += 3;
		} else if (!strncmp(format, "%s", 2)) {
			host_append(buf, size, &len, va_arg(rest, char *));
			format++;
		} else {
			snprintf(part, sizeof(part), "%c", *format);
			host_append(buf, size, &len, part);
		}
	}
	va_end(rest);
	return len;
}

__thread struct task_struct host_task = { .tgid = 1, .pid = 1 };

/* Tests of what there is once come one after the other. */
static pthread_mutex_t host_one = PTHREAD_MUTEX_INITIALIZER;

void host_alone(void)
{
	pthread_mutex_lock(&host_one);
}

void host_not_alone(void)
{
	pthread_mutex_unlock(&host_one);
}

/* From now on this thread is that one. */
void host_be(s32 process, s32 thread, bool exiting)
{
	host_task.tgid = process;
	host_task.pid = thread;
	host_task.flags = exiting ? PF_EXITING : 0;
	host_task.group_leader = &host_task;
}

/* Of that user; and a thread of the kernel, if it is one. */
void host_be_of(u32 user, bool kernel)
{
	host_task.uid = user;
	if (kernel)
		host_task.flags |= PF_KTHREAD;
}

/* From now on this thread is of a process of that name, begun then. */
void host_be_called(const char *name, u64 born)
{
	host_task.group_leader = &host_task;
	host_task.start_boottime = born;
	strncpy(host_task.comm, name, sizeof(host_task.comm) - 1);
}

u64 jiffies;

void host_later(u64 seconds)
{
	__atomic_fetch_add(&jiffies, seconds * HZ, __ATOMIC_RELAXED);
}

static const struct proc_ops *host_file;

struct proc_dir_entry *proc_mkdir(const char *name, struct proc_dir_entry *parent)
{
	(void)parent;
	return host_fail_at && !--host_fail_at ? NULL : (void *)name;
}

struct proc_dir_entry *proc_create(const char *name, uint mode, struct proc_dir_entry *parent,
				   const struct proc_ops *ops)
{
	if (!parent || mode != 0400)
		host_bug("a file that others may read");
	if (host_fail_at && !--host_fail_at)
		return NULL;
	host_file = ops;
	return (void *)name;
}

void proc_remove(struct proc_dir_entry *entry)
{
	(void)entry;
	host_file = NULL;
}

/* Whether the file is there. */
bool host_proc(void)
{
	return host_file;
}

void seq_read(void)
{
}

void seq_lseek(void)
{
}

int seq_open_private(struct file *file, const struct seq_operations *op, int size)
{
	struct seq_file *seq = calloc(1, sizeof(*seq));

	seq->op = op;
	seq->private = calloc(1, size);
	file->private_data = seq;
	return 0;
}

int seq_release_private(struct inode *inode, struct file *file)
{
	struct seq_file *seq = file->private_data;

	(void)inode;
	free(seq->private);
	free(seq);
	return 0;
}

/* A line that does not fit fills the buffer. */
void seq_printf(struct seq_file *file, const char *format, ...)
{
	size_t room = file->size - file->count;
	va_list rest;
	int len;

	if (host_locks)
		host_bug("a line is written under a lock");
	va_start(rest, format);
	len = vsnprintf(file->buf + file->count, room, format, rest);
	va_end(rest);
	file->count = (size_t)len < room ? file->count + len : file->size;
}

/* Each thread may have it taken away. */
static __thread bool host_incapable;

void host_be_capable(bool is)
{
	host_incapable = !is;
}

bool capable(int capability)
{
	if (capability != CAP_SYS_ADMIN)
		host_bug("another capability");
	return !host_incapable;
}

/* NULL if it cannot be opened. */
struct file *host_open(void)
{
	struct file *file = calloc(1, sizeof(*file));
	int ret = host_file->proc_open(NULL, file);

	if (ret && (ret != -EPERM || file->private_data))
		host_bug("opened in part");
	if (ret) {
		free(file);
		return NULL;
	}
	return file;
}

/* Whole lines, as many as there is room for, in the kernel's way: a line that did not fit is the next call's first. */
size_t host_read(struct file *file, char *buf, size_t size)
{
	struct seq_file *seq = file->private_data;
	size_t before = 0;
	void *line;

	seq->buf = buf;
	seq->size = size;
	seq->count = 0;
	for (line = seq->op->start(seq, &seq->index); line;
	     line = seq->op->next(seq, line, &seq->index)) {
		seq->op->show(seq, line);
		if (seq->count == size) {
			seq->count = before;
			break;
		}
		before = seq->count;
	}
	seq->op->stop(seq, line);
	return seq->count;
}

/* The next line read is this one. */
void host_seek(struct file *file, loff_t line)
{
	struct seq_file *seq = file->private_data;

	seq->index = line;
}

void host_close(struct file *file)
{
	host_file->proc_release(NULL, file);
	free(file);
}

static s64 host_figures[16];

void nvpm_count(uint figure, u64 by)
{
	__atomic_fetch_add(&host_figures[figure], by, __ATOMIC_RELAXED);
}

s64 host_figure(uint figure)
{
	return __atomic_load_n(&host_figures[figure], __ATOMIC_RELAXED);
}
