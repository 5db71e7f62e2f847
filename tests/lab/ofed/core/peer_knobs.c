// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a test sets in debugfs: the server's and the driver's faults.
 *
 * In every file a line is "NAME NUMBER", and what is read can be written; `hold`
 * has one number more to read.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "peer_server.h"

/* How long a test may hold a task. */
#define PEER_HOLD_SECONDS 60

static const char *const peer_point_names[PEER_POINTS] = {
	[PEER_AT_REGISTER] = "register",
	[PEER_AT_UMEM] = "umem",
	[PEER_AT_ID] = "id",
	[PEER_AT_MAP] = "map",
	[PEER_AT_DRIVER] = "driver",
	[PEER_AT_INVALIDATE] = "invalidate",
	[PEER_AT_STOP] = "stop",
	[PEER_AT_UNMAP] = "unmap",
	[PEER_AT_RELEASE] = "release",
};

/* At each point: milliseconds to wait, registrations still to fail, ... */
static const unsigned long peer_delay_points = BIT(PEER_AT_REGISTER) |
	BIT(PEER_AT_MAP) | BIT(PEER_AT_DRIVER) | BIT(PEER_AT_INVALIDATE) |
	BIT(PEER_AT_STOP) | BIT(PEER_AT_UNMAP) | BIT(PEER_AT_RELEASE);
static const unsigned long peer_fail_points = BIT(PEER_AT_UMEM) |
	BIT(PEER_AT_ID) | BIT(PEER_AT_DRIVER);
static atomic_t peer_delays[PEER_POINTS];
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
static void peer_hold(enum peer_point point)
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

void peer_delay(enum peer_point point)
{
	int ms = atomic_read(&peer_delays[point]);

	if (ms)
		msleep(ms);
	peer_hold(point);
}

int peer_fail(enum peer_point point)
{
	if (atomic_dec_if_positive(&peer_fails[point]) < 0)
		return 0;
	peer_count(PEER_INJECTED_FAILURES, 1);
	return -ENOMEM;
}

static void peer_names_show(struct seq_file *m, const char *const *names,
			    unsigned long valid, atomic_t *values)
{
	int i;

	for_each_set_bit(i, &valid, BITS_PER_LONG)
		seq_printf(m, "%s %d\n", names[i], atomic_read(&values[i]));
}

static int peer_line_store(char *line, const char *const *names,
			   unsigned long valid, atomic_t *values)
{
	char *name = strsep(&line, " ");
	int i, value;

	if (!line || kstrtoint(strim(line), 10, &value) || value < 0)
		return -EINVAL;
	for_each_set_bit(i, &valid, BITS_PER_LONG) {
		if (strcmp(name, names[i]))
			continue;
		atomic_set(&values[i], value);
		return 0;
	}
	return -EINVAL;
}

static ssize_t peer_names_store(const char __user *buf, size_t count,
				const char *const *names, unsigned long valid,
				atomic_t *values)
{
	char text[256], *rest = text, *line;
	int err;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, count))
		return -EFAULT;
	text[count] = 0;
	while ((line = strsep(&rest, "\n"))) {
		line = strim(line);
		err = *line ? peer_line_store(line, names, valid, values) : 0;
		if (err)
			return err;
	}
	return count;
}

static int delay_show(struct seq_file *m, void *unused)
{
	peer_names_show(m, peer_point_names, peer_delay_points, peer_delays);
	return 0;
}

static ssize_t delay_write(struct file *file, const char __user *buf,
			   size_t count, loff_t *pos)
{
	return peer_names_store(buf, count, peer_point_names, peer_delay_points,
				peer_delays);
}
DEFINE_SHOW_STORE_ATTRIBUTE(delay);

static int fail_show(struct seq_file *m, void *unused)
{
	peer_names_show(m, peer_point_names, peer_fail_points, peer_fails);
	return 0;
}

static ssize_t fail_write(struct file *file, const char __user *buf,
			  size_t count, loff_t *pos)
{
	return peer_names_store(buf, count, peer_point_names, peer_fail_points,
				peer_fails);
}
DEFINE_SHOW_STORE_ATTRIBUTE(fail);

static int hold_show(struct seq_file *m, void *unused)
{
	int i;

	for_each_set_bit(i, &peer_delay_points, BITS_PER_LONG)
		seq_printf(m, "%s %d %d\n", peer_point_names[i],
			   atomic_read(&peer_holds[i]), atomic_read(&peer_held[i]));
	return 0;
}

static ssize_t hold_write(struct file *file, const char __user *buf,
			  size_t count, loff_t *pos)
{
	ssize_t ret = peer_names_store(buf, count, peer_point_names,
				       peer_delay_points, peer_holds);

	wake_up_all(&peer_hold_wait);
	return ret;
}
DEFINE_SHOW_STORE_ATTRIBUTE(hold);

static int switch_show(struct seq_file *m, void *unused)
{
	peer_names_show(m, peer_switch_names, BIT(PEER_SWITCHES) - 1, peer_switches);
	return 0;
}

static ssize_t switch_write(struct file *file, const char __user *buf,
			    size_t count, loff_t *pos)
{
	return peer_names_store(buf, count, peer_switch_names,
				BIT(PEER_SWITCHES) - 1, peer_switches);
}
DEFINE_SHOW_STORE_ATTRIBUTE(switch);

/* A name that another client has; the empty one ends that. */
static ssize_t taken_name_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	char name[IB_PEER_MEMORY_NAME_MAX];
	int err;

	if (count >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buf, count))
		return -EFAULT;
	name[count] = 0;
	err = peer_client_take_name(strim(name));
	return err ?: count;
}

static const struct file_operations taken_name_fops = {
	.owner = THIS_MODULE,
	.write = taken_name_write,
};

void peer_knobs_create(struct dentry *dir)
{
	debugfs_create_file("delay", 0644, dir, NULL, &delay_fops);
	debugfs_create_file("fail", 0644, dir, NULL, &fail_fops);
	debugfs_create_file("hold", 0644, dir, NULL, &hold_fops);
	debugfs_create_file("switch", 0644, dir, NULL, &switch_fops);
	debugfs_create_file("taken_name", 0200, dir, NULL, &taken_name_fops);
}
