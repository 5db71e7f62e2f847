// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a test sets in debugfs: the server's and the driver's faults.
 *
 * In every file a line is "NAME NUMBER", and what is read can be written; `hold`
 * has one number more to read.
 */
#include <linux/bitops.h>
#include <linux/debugfs.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "peer_server.h"

/* How long a test may hold a task. */
#define PEER_HOLD_SECONDS 60

static const char *const peer_point_names[PEER_POINTS] = {
	[PEER_AT_UMEM] = "umem",
	[PEER_AT_ID] = "id",
	[PEER_AT_MAP] = "map",
	[PEER_AT_DRIVER] = "driver",
	[PEER_AT_INVALIDATE] = "invalidate",
	[PEER_AT_STOP] = "stop",
	[PEER_AT_UNMAP] = "unmap",
};

/* At each point: registrations still to fail, ... */
static atomic_t peer_fails[PEER_POINTS];

/* ... and whether tasks are held until a test lets them go, and how many are. */
static atomic_t peer_holds[PEER_POINTS];
static atomic_t peer_held[PEER_POINTS];
static DECLARE_WAIT_QUEUE_HEAD(peer_hold_wait);

static const char *const peer_switch_names[PEER_SWITCHES] = {
	[PEER_NULL_DEVICE] = "null_device",
	[PEER_OTHER_DEVICE] = "other_device",
	[PEER_SHORT_SEGMENTS] = "short_segments",
	[PEER_ANY_MEMORY] = "any_memory",
	[PEER_LIGHT] = "light",
	[PEER_DROP_INVAL] = "no_inval_supp",
	[PEER_LATE_TICKETS] = "late_tickets",
	[PEER_B2_STOP_INVERTED] = "b2_stop_inverted",
	[PEER_B7_NO_TRIM] = "b7_no_trim",
	[PEER_B8_DEREG_FIGURES] = "b8_dereg_figures",
	[PEER_B11_NO_STOP] = "b11_no_stop",
	[PEER_B13_NEVER_ACTIVATES] = "b13_never_activates",
};

static atomic_t peer_switches[PEER_SWITCHES];

bool peer_switched(enum peer_switch which)
{
	return atomic_read(&peer_switches[which]);
}

/* A test that forgets somebody fails, but does not hang. */
void peer_hold(enum peer_point point)
{
	if (!atomic_read(&peer_holds[point]))
		return;
	atomic_inc(&peer_held[point]);
	if (!wait_event_timeout(peer_hold_wait, !atomic_read(&peer_holds[point]),
				PEER_HOLD_SECONDS * HZ))
		pr_err("peer memory: WARNING: %s held for %d s: going on\n",
		       peer_point_names[point], PEER_HOLD_SECONDS);
	atomic_dec(&peer_held[point]);
}

int peer_fail(enum peer_point point)
{
	return atomic_dec_if_positive(&peer_fails[point]) < 0 ? 0 : -ENOMEM;
}

/* A file: a number for each name that it knows. */
struct peer_knob {
	const char *file;
	const char *const *names;
	unsigned long valid;
	atomic_t *values;
	atomic_t *more;		/* to read, behind the number */
};

static const struct peer_knob peer_knobs[] = {
	{
		.file = "fail",
		.names = peer_point_names,
		.valid = BIT(PEER_AT_UMEM) | BIT(PEER_AT_ID) | BIT(PEER_AT_DRIVER),
		.values = peer_fails,
	}, {
		.file = "hold",
		.names = peer_point_names,
		.valid = BIT(PEER_AT_MAP) | BIT(PEER_AT_DRIVER) |
			 BIT(PEER_AT_INVALIDATE) | BIT(PEER_AT_STOP) |
			 BIT(PEER_AT_UNMAP),
		.values = peer_holds,
		.more = peer_held,
	}, {
		.file = "switch",
		.names = peer_switch_names,
		.valid = BIT(PEER_SWITCHES) - 1,
		.values = peer_switches,
	},
};

static int knob_show(struct seq_file *m, void *unused)
{
	const struct peer_knob *knob = m->private;
	int i;

	for_each_set_bit(i, &knob->valid, BITS_PER_LONG) {
		seq_printf(m, "%s %d", knob->names[i], atomic_read(&knob->values[i]));
		if (knob->more)
			seq_printf(m, " %d", atomic_read(&knob->more[i]));
		seq_putc(m, '\n');
	}
	return 0;
}

static int peer_line_store(const struct peer_knob *knob, char *line)
{
	char *name = strsep(&line, " ");
	int i, value;

	if (!line || kstrtoint(strim(line), 10, &value) || value < 0)
		return -EINVAL;
	for_each_set_bit(i, &knob->valid, BITS_PER_LONG) {
		if (strcmp(name, knob->names[i]))
			continue;
		atomic_set(&knob->values[i], value);
		return 0;
	}
	return -EINVAL;
}

static ssize_t knob_write(struct file *file, const char __user *buf, size_t count,
			  loff_t *pos)
{
	char *text __free(kfree) = memdup_user_nul(buf, count);
	const struct peer_knob *knob = ((struct seq_file *)file->private_data)->private;
	char *rest = text, *line;
	int err = 0;

	if (IS_ERR(text))
		return PTR_ERR(text);
	while (!err && (line = strsep(&rest, "\n"))) {
		line = strim(line);
		err = *line ? peer_line_store(knob, line) : 0;
	}
	wake_up_all(&peer_hold_wait);
	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(knob);

/* A name that another client has; the empty one ends that. */
static ssize_t taken_name_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	char *name __free(kfree) = memdup_user_nul(buf, count);

	if (IS_ERR(name))
		return PTR_ERR(name);
	return peer_client_take_name(strim(name)) ?: count;
}

static const struct file_operations taken_name_fops = {
	.owner = THIS_MODULE,
	.write = taken_name_write,
};

void peer_knobs_create(struct dentry *dir)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(peer_knobs); i++)
		debugfs_create_file(peer_knobs[i].file, 0644, dir,
				    (void *)&peer_knobs[i], &knob_fops);
	debugfs_create_file("taken_name", 0200, dir, NULL, &taken_name_fops);
}
