// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The files in debugfs that tests read and write (../README.md).
 */
#include <linux/module.h>

#include "peer_server.h"

/* The number of seconds for which a test may hold a task. */
#define PEER_HOLD_SECONDS 60

/* A line of a file: a name, and one number or two. */
struct peer_number {
	const char *name;
	atomic64_t value;
	atomic64_t more;
};

#define PEER_NUMBER(_name) { .name = #_name },
static struct peer_number peer_ops[] = PEER_OPS(PEER_NUMBER);	/* calls, ticks */
static struct peer_number peer_counters[] = PEER_COUNTERS(PEER_NUMBER);
static struct peer_number peer_switches[] = PEER_SWITCHES(PEER_NUMBER);
static struct peer_number peer_fails[] = PEER_FAILS(PEER_NUMBER);	/* still to fail */
static struct peer_number peer_holds[] = PEER_HOLDS(PEER_NUMBER);	/* on or off, tasks */

static DECLARE_WAIT_QUEUE_HEAD(peer_hold_wait);

void peer_count(enum peer_counter which, s64 by)
{
	atomic64_add(by, &peer_counters[which].value);
}

/* Adds the ticks of get_cycles() that a finished call has taken. */
void peer_clock(enum peer_op op, u64 ticks)
{
	atomic64_inc(&peer_ops[op].value);
	atomic64_add(ticks, &peer_ops[op].more);
}

const char *peer_op_name(enum peer_op op)
{
	return peer_ops[op].name;
}

bool peer_switched(enum peer_switch which)
{
	return atomic64_read(&peer_switches[which].value);
}

int peer_fail(enum peer_fail point)
{
	return atomic64_dec_if_positive(&peer_fails[point].value) < 0 ? 0 : -ENOMEM;
}

/*
 * Holds a task until the test lets it continue. If the test forgets the task, the task continues
 * after a while, and a warning in the log makes the test fail.
 */
void peer_hold(enum peer_hold point)
{
	struct peer_number *hold = &peer_holds[point];

	if (!atomic64_read(&hold->value))
		return;
	atomic64_inc(&hold->more);
	if (!wait_event_timeout(peer_hold_wait, !atomic64_read(&hold->value),
				PEER_HOLD_SECONDS * HZ))
		pr_err("peer memory: WARNING: %s held for %d s: going on\n",
		       hold->name, PEER_HOLD_SECONDS);
	atomic64_dec(&hold->more);
}

/* ---- files of numbers ------------------------------------------------------ */

struct peer_file {
	const char *name;
	umode_t mode;
	struct peer_number *numbers;
	unsigned int count;
	bool two;
};

#define PEER_FILE(_name, _mode, _numbers, _two)				\
	{ .name = _name, .mode = _mode, .numbers = _numbers,		\
	  .count = ARRAY_SIZE(_numbers), .two = _two }

static struct peer_file peer_files[] = {
	PEER_FILE("clocks", 0444, peer_ops, true),
	PEER_FILE("counters", 0444, peer_counters, false),
	PEER_FILE("fail", 0644, peer_fails, false),
	PEER_FILE("hold", 0644, peer_holds, true),
	PEER_FILE("switch", 0644, peer_switches, false),
};

static int numbers_show(struct seq_file *m, void *unused)
{
	const struct peer_file *file = m->private;
	struct peer_number *n;

	for (n = file->numbers; n < file->numbers + file->count; n++) {
		seq_printf(m, "%s %lld", n->name, atomic64_read(&n->value));
		if (file->two)
			seq_printf(m, " %lld", atomic64_read(&n->more));
		seq_putc(m, '\n');
	}
	/* The numbers of calls of each operation are also counters. */
	for (n = peer_ops; file->numbers == peer_counters && n < peer_ops + ARRAY_SIZE(peer_ops); n++)
		seq_printf(m, "calls_%s %lld\n", n->name, atomic64_read(&n->value));
	return 0;
}

static int peer_line_store(const struct peer_file *file, const char *line)
{
	struct peer_number *n;
	char name[32];
	int value;

	if (sscanf(line, "%31s %d", name, &value) != 2 || value < 0)
		return -EINVAL;
	for (n = file->numbers; n < file->numbers + file->count; n++) {
		if (strcmp(name, n->name))
			continue;
		atomic64_set(&n->value, value);
		return 0;
	}
	return -EINVAL;
}

static ssize_t numbers_write(struct file *file, const char __user *buf, size_t count,
			     loff_t *pos)
{
	char *text __free(kfree) = memdup_user_nul(buf, count);
	char *rest = text, *line;
	int err = 0;

	if (IS_ERR(text))
		return PTR_ERR(text);
	while (!err && (line = strsep(&rest, "\n")))
		if (*line)
			err = peer_line_store(((struct seq_file *)file->private_data)->private,
					      line);
	wake_up_all(&peer_hold_wait);
	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(numbers);

/* ---- violations ------------------------------------------------------------ */

/* A broken rule: how often it was broken, and the details of the last time. */
struct peer_offence {
	const char *kind;
	unsigned int count;
	char last[256];
};

static DEFINE_SPINLOCK(peer_lab_lock);

/* The offences in the order of their first time. There are fewer kinds than entries. */
static struct peer_offence peer_offences[32];

void peer_violation(struct peer_client *client, const char *kind, const char *format, ...)
{
	char text[sizeof(peer_offences->last)];
	struct peer_offence *offence = peer_offences;
	unsigned long flags;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pr_err("peer memory: violation: %s: %s: %s\n",
	       client ? client->ops->name : "?", kind, text);

	spin_lock_irqsave(&peer_lab_lock, flags);
	while (offence->kind && strcmp(offence->kind, kind))
		offence++;
	offence->kind = kind;
	offence->count++;
	strscpy(offence->last, text, sizeof(offence->last));
	spin_unlock_irqrestore(&peer_lab_lock, flags);
}

static int violations_show(struct seq_file *m, void *unused)
{
	struct peer_offence *o;

	spin_lock_irq(&peer_lab_lock);
	for (o = peer_offences; o->kind; o++)
		seq_printf(m, "%s %u: %s\n", o->kind, o->count, o->last);
	spin_unlock_irq(&peer_lab_lock);
	return 0;
}

/* Clears the list, for a test that breaks rules on purpose. */
static ssize_t violations_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	spin_lock_irq(&peer_lab_lock);
	memset(peer_offences, 0, sizeof(peer_offences));
	spin_unlock_irq(&peer_lab_lock);
	return count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(violations);

static int calls_show(struct seq_file *m, void *unused)
{
	return peer_show_calls(m);
}
DEFINE_SHOW_ATTRIBUTE(calls);

static struct dentry *peer_dir;

void ib_peer_init(void)
{
	struct peer_file *f;

	peer_dir = debugfs_create_dir("peer_mem_lab", NULL);
	for (f = peer_files; f < peer_files + ARRAY_SIZE(peer_files); f++)
		debugfs_create_file(f->name, f->mode, peer_dir, f, &numbers_fops);
	debugfs_create_file("calls", 0444, peer_dir, NULL, &calls_fops);
	debugfs_create_file("violations", 0644, peer_dir, NULL, &violations_fops);
	peer_consumer_create(peer_dir);
}

void ib_peer_exit(void)
{
	debugfs_remove(peer_dir);
}
