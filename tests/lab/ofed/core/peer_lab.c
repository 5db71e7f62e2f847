// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a test reads in debugfs: counters, violations, and calls.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>

#include "peer_hooks.h"
#include "peer_server.h"

static struct dentry *peer_dir;

static const char *const peer_op_names[PEER_OPS] = {
	[PEER_ACQUIRE] = "acquire",
	[PEER_GET_PAGES] = "get_pages",
	[PEER_DMA_MAP] = "dma_map",
	[PEER_GET_PAGE_SIZE] = "get_page_size",
	[PEER_DMA_UNMAP] = "dma_unmap",
	[PEER_PUT_PAGES] = "put_pages",
	[PEER_RELEASE] = "release",
	[PEER_INVALIDATE] = "invalidate",
};

static const char *const peer_counter_names[PEER_COUNTERS] = {
	[PEER_LIVE_CLIENTS] = "live_clients",
	[PEER_LIVE_UMEMS] = "live_umems",
	[PEER_LIVE_CONTEXTS] = "live_contexts",
	[PEER_LIVE_GOT] = "live_got",
	[PEER_LIVE_MAPPED] = "live_mapped",
	[PEER_LIVE_PINNED_PAGES] = "live_pinned_pages",
	[PEER_LIVE_INVALIDATIONS] = "live_invalidations",
	[PEER_LIVE_WAITS] = "live_waits",
	[PEER_INVALIDATIONS] = "invalidations",
	[PEER_INVALIDATIONS_UNKNOWN] = "invalidations_unknown",
	[PEER_INVALIDATIONS_LATE] = "invalidations_late",
	[PEER_INVALIDATIONS_PREMATURE] = "invalidations_premature",
	[PEER_REVOKED_UMEMS] = "revoked_umems",
	[PEER_ENDED_IN_CALLBACK] = "ended_in_callback",
	[PEER_SKIPPED_CLIENTS] = "skipped_clients",
	[PEER_TABLES_WITHOUT_PAGES] = "tables_without_pages",
	[PEER_B2_UNLOCKS] = "b2_unlocks",
	[PEER_B11_UNSTOPPED] = "b11_unstopped",
	[PEER_B13_HANGS] = "b13_hangs",
};

static const char *const peer_violation_names[PEER_VIOLATIONS] = {
	[PEER_BAD_CLIENT] = "bad_client",
	[PEER_BAD_HANDLE] = "bad_handle",
	[PEER_REENTRY] = "reentry",
	[PEER_NO_CONTEXT] = "no_context",
	[PEER_BAD_RETURN] = "bad_return",
	[PEER_CONTEXT_LEAK] = "context_leak",
	[PEER_BAD_PAGE_SIZE] = "bad_page_size",
	[PEER_BAD_TABLE] = "bad_table",
	[PEER_BAD_ENTRY] = "bad_entry",
	[PEER_BAD_LENGTH] = "bad_length",
	[PEER_BAD_ADDRESS] = "bad_address",
	[PEER_UNMAPPED_ADDRESS] = "unmapped_address",
	[PEER_TABLE_CHANGED] = "table_changed",
	[PEER_INVALIDATE_ATOMIC] = "invalidate_atomic",
	[PEER_INVALIDATE_TICKET] = "invalidate_ticket",
	[PEER_INVALIDATE_EARLY] = "invalidate_early",
	[PEER_INVALIDATE_DEADLOCK] = "invalidate_deadlock",
	[PEER_RELEASE_EARLY] = "release_early",
	[PEER_UNREGISTER_EARLY] = "unregister_early",
	[PEER_B2_DEADLOCK] = "b2_deadlock",
};

static atomic64_t peer_op_counts[PEER_OPS];
static atomic64_t peer_op_ticks[PEER_OPS];
static atomic64_t peer_counters[PEER_COUNTERS];

const char *peer_op_name(enum peer_op op)
{
	return peer_op_names[op];
}

void peer_count(enum peer_counter which, s64 by)
{
	atomic64_add(by, &peer_counters[which]);
}

/* A call that is over has taken so many ticks of get_cycles(). */
void peer_clock(enum peer_op op, u64 ticks)
{
	atomic64_inc(&peer_op_counts[op]);
	atomic64_add(ticks, &peer_op_ticks[op]);
}

static int clocks_show(struct seq_file *m, void *unused)
{
	int i;

	for (i = 0; i < PEER_OPS; i++)
		seq_printf(m, "%s %lld %lld\n", peer_op_names[i],
			   atomic64_read(&peer_op_counts[i]),
			   atomic64_read(&peer_op_ticks[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clocks);

static int counters_show(struct seq_file *m, void *unused)
{
	int i;

	for (i = 0; i < PEER_COUNTERS; i++)
		seq_printf(m, "%s %lld\n", peer_counter_names[i],
			   atomic64_read(&peer_counters[i]));
	for (i = 0; i < PEER_OPS; i++)
		seq_printf(m, "calls_%s %lld\n", peer_op_names[i],
			   atomic64_read(&peer_op_counts[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int calls_show(struct seq_file *m, void *unused)
{
	peer_show_calls(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(calls);

/* How often each rule was broken, and how the last time. */
struct peer_offence {
	unsigned int count;
	char last[256];
};

static DEFINE_SPINLOCK(peer_lab_lock);
static struct peer_offence peer_offences[PEER_VIOLATIONS];

void peer_violation(struct peer_client *client, enum peer_violation kind,
		    const char *format, ...)
{
	struct peer_offence *offence = &peer_offences[kind];
	char text[sizeof(offence->last)];
	unsigned long flags;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pr_err("peer memory: violation: %s: %s: %s\n",
	       client ? client->ops->name : "?", peer_violation_names[kind], text);

	spin_lock_irqsave(&peer_lab_lock, flags);
	offence->count++;
	strscpy(offence->last, text, sizeof(offence->last));
	spin_unlock_irqrestore(&peer_lab_lock, flags);
}

static int violations_show(struct seq_file *m, void *unused)
{
	int i;

	spin_lock_irq(&peer_lab_lock);
	for (i = 0; i < PEER_VIOLATIONS; i++)
		if (peer_offences[i].count)
			seq_printf(m, "%s %u: %s\n", peer_violation_names[i],
				   peer_offences[i].count, peer_offences[i].last);
	spin_unlock_irq(&peer_lab_lock);
	return 0;
}

/* A test that meant to break rules wipes its traces, by writing anything. */
static ssize_t violations_write(struct file *file, const char __user *buf,
				size_t count, loff_t *pos)
{
	spin_lock_irq(&peer_lab_lock);
	memset(peer_offences, 0, sizeof(peer_offences));
	spin_unlock_irq(&peer_lab_lock);
	return count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(violations);

void ib_peer_init(void)
{
	peer_dir = debugfs_create_dir("peer_mem_lab", NULL);
	debugfs_create_file("calls", 0444, peer_dir, NULL, &calls_fops);
	debugfs_create_file("clocks", 0444, peer_dir, NULL, &clocks_fops);
	debugfs_create_file("counters", 0444, peer_dir, NULL, &counters_fops);
	debugfs_create_file("violations", 0644, peer_dir, NULL, &violations_fops);
	peer_knobs_create(peer_dir);
	peer_consumer_create(peer_dir);
}

void ib_peer_exit(void)
{
	debugfs_remove(peer_dir);
	peer_client_take_name("");
}
