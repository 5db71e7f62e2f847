// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The test's side: counters, violations and knobs, in debugfs under nvidia_lab.
 *
 * counters     "name value" on each line. Names that start with live_ are of
 *              things that exist, and are 0 when nobody uses the GPU. The others
 *              are totals.
 * violations   "kind count text" on each line, where text is that of the first
 *              time. Empty if no client did anything wrong. Writing "clear"
 *              empties it.
 * fail         write "<export> <errno> <nth> [count]": the nth call from now,
 *              and count calls in all (1 if not given, 0 is for ever), fail.
 *              The export may be given without its nvidia_p2p_, the errno as a
 *              number or by name. "clear" ends all. Reading gives what is set.
 * inject       write "<point> [nth]": memory is freed by another task at the
 *              nth time that this point is passed. One at a time; reading gives
 *              what is still to come. "random <permille>": at any point.
 * inject_from  which task frees then.
 * hold         write a point: calls stay there, after its injected free if one is due,
 *              until "none" is written.
 * layout       how the pages of allocations made from now on lie in the BAR.
 * seed         of all that is random. Writing starts it afresh.
 * free_from    which task frees at munmap and exit.
 * coherent     1: allocations made from now on are RAM; 2: that is not online (coherent.c).
 * (numbers)    see the table at the end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "sim.h"

struct sim_knobs sim_knobs = {
	.inject_from = SIM_FREE_FROM_KTHREAD,
	.inject_wait_ms = 10000,
	.quarantine_max = 1024,
	.page_size = NVIDIA_P2P_PAGE_SIZE_64KB,
	.verify = 1,
	.remap_peer_mmio = 1,
};

static struct dentry *sim_dir;
static DEFINE_SPINLOCK(sim_spin);	/* everything below but the counters */

/* ---- counters ---------------------------------------------------------- */

const char * const sim_clock_names[SIM_CLOCKS] = {
	[SIM_GET_PAGES] = "nvidia_p2p_get_pages",
	[SIM_PUT_PAGES] = "nvidia_p2p_put_pages",
	[SIM_GET_PAGES_PERSISTENT] = "nvidia_p2p_get_pages_persistent",
	[SIM_PUT_PAGES_PERSISTENT] = "nvidia_p2p_put_pages_persistent",
	[SIM_DMA_MAP_PAGES] = "nvidia_p2p_dma_map_pages",
	[SIM_DMA_UNMAP_PAGES] = "nvidia_p2p_dma_unmap_pages",
	[SIM_FREE_PAGE_TABLE] = "nvidia_p2p_free_page_table",
	[SIM_FREE_DMA_MAPPING] = "nvidia_p2p_free_dma_mapping",
	[SIM_INIT_MAPPING] = "nvidia_p2p_init_mapping",
	[SIM_DESTROY_MAPPING] = "nvidia_p2p_destroy_mapping",
	[SIM_REGISTER_RSYNC_DRIVER] = "nvidia_p2p_register_rsync_driver",
	[SIM_UNREGISTER_RSYNC_DRIVER] = "nvidia_p2p_unregister_rsync_driver",
	[SIM_GET_RSYNC_REGISTERS] = "nvidia_p2p_get_rsync_registers",
	[SIM_PUT_RSYNC_REGISTERS] = "nvidia_p2p_put_rsync_registers",
	[SIM_FREE_CALLBACK] = "free_callback",
	[SIM_FREE_MEMORY] = "free_memory",
};

static const char * const sim_counter_names[SIM_COUNTERS] = {
	[SIM_LIVE_ALLOCATIONS] = "live_allocations",
	[SIM_LIVE_FRAMES] = "live_frames",
	[SIM_LIVE_ORPHANS] = "live_orphans",
	[SIM_LIVE_PINS] = "live_pins",
	[SIM_LIVE_PERSISTENT_PINS] = "live_persistent_pins",
	[SIM_LIVE_DMA_MAPPINGS] = "live_dma_mappings",
	[SIM_LIVE_DMA_PAGES] = "live_dma_pages",
	[SIM_LIVE_OWN_MAPPINGS] = "live_own_mappings",
	[SIM_LIVE_ARMED_CALLBACKS] = "live_armed_callbacks",
	[SIM_LIVE_CALLBACKS_RUNNING] = "live_callbacks_running",
	[SIM_LIVE_DEVICE_REFS] = "live_device_refs",
	[SIM_LIVE_BAR1_USED] = "live_bar1_used",
	[SIM_LIVE_INJECTIONS] = "live_injections",
	[SIM_LIVE_HELD] = "live_held",
	[SIM_LIVE_RSYNC_DRIVERS] = "live_rsync_drivers",
	[SIM_ALLOCATIONS] = "allocations",
	[SIM_FREES] = "frees",
	[SIM_CALLBACKS_FIRED] = "callbacks_fired",
	[SIM_PUT_NOT_FOUND] = "put_not_found",
	[SIM_PAGES_NOT_FOUND] = "pages_not_found",
	[SIM_FAILURES_INJECTED] = "failures_injected",
	[SIM_INJECTIONS] = "injections",
	[SIM_COSTS_EXCEEDED] = "costs_exceeded",
	[SIM_VIOLATIONS] = "violations",
};

static atomic64_t sim_counters[SIM_COUNTERS];

void sim_add(enum sim_counter which, s64 n)
{
	atomic64_add(n, &sim_counters[which]);
}

s64 sim_read(enum sim_counter which)
{
	return atomic64_read(&sim_counters[which]);
}

static int counters_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < SIM_COUNTERS; i++)
		seq_printf(s, "%s %lld\n", sim_counter_names[i], sim_read(i));
	for (i = 0; i < SIM_EXPORTS; i++)
		seq_printf(s, "calls_%s %lld\n", sim_clock_names[i],
			   sim_clock_calls(i));
	sim_inject_show_counters(s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* ---- violations -------------------------------------------------------- */

static const char * const sim_offence_names[SIM_OFFENCES] = {
	[SIM_BAD_REENTRY] = "reentry",
	[SIM_BAD_STALL] = "stall",
	[SIM_BAD_NULL] = "null_argument",
	[SIM_BAD_RANGE] = "bad_range",
	[SIM_BAD_TABLE_UNKNOWN] = "table_unknown",
	[SIM_BAD_TABLE_DEAD] = "table_dead",
	[SIM_BAD_TABLE_KIND] = "table_kind",
	[SIM_BAD_TABLE_ADDRESS] = "table_address",
	[SIM_BAD_TABLE_MODIFIED] = "table_modified",
	[SIM_BAD_DOUBLE_PUT] = "double_put",
	[SIM_BAD_ABA_PUT] = "aba_put",
	[SIM_BAD_MAPPING_UNKNOWN] = "mapping_unknown",
	[SIM_BAD_MAPPING_DEAD] = "mapping_dead",
	[SIM_BAD_MAPPING_OWNER] = "mapping_owner",
	[SIM_BAD_MAPPING_MODIFIED] = "mapping_modified",
	[SIM_BAD_WRITE_AFTER_FREE] = "write_after_free",
	[SIM_BAD_PEER] = "bad_peer",
	[SIM_BAD_PAGE_SIZE] = "page_size",
	[SIM_BAD_RACE_DMA_MAP] = "race_dma_map",
	[SIM_BAD_RACE_DMA_UNMAP] = "race_dma_unmap",
	[SIM_BAD_NOOP_FREE] = "noop_free",
	[SIM_BAD_OWN_COHERENT] = "own_coherent",
	[SIM_BAD_UNLOAD_ARMED] = "unload_armed",
	[SIM_BAD_UNLOAD_PINNED] = "unload_pinned",
	[SIM_BAD_RSYNC] = "rsync",
	[SIM_BAD_LEFTOVER] = "leftover",
};

static struct {
	u64 count;
	char text[240];
} sim_offences[SIM_OFFENCES];

void sim_violation(enum sim_offence what, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	bool first;
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;

	sim_add(SIM_VIOLATIONS, 1);
	spin_lock(&sim_spin);
	first = !sim_offences[what].count++;
	if (first)
		scnprintf(sim_offences[what].text,
			  sizeof(sim_offences[what].text), "%pV (%s, pid %d)",
			  &vaf, current->comm, task_pid_nr(current));
	spin_unlock(&sim_spin);
	va_end(args);

	if (first)
		pr_err("violation: %s: %s\n", sim_offence_names[what],
		       sim_offences[what].text);
}

static int violations_show(struct seq_file *s, void *unused)
{
	int i;

	spin_lock(&sim_spin);
	for (i = 0; i < SIM_OFFENCES; i++)
		if (sim_offences[i].count)
			seq_printf(s, "%s %llu %s\n", sim_offence_names[i],
				   sim_offences[i].count, sim_offences[i].text);
	spin_unlock(&sim_spin);
	return 0;
}

static ssize_t violations_write(struct file *file, const char __user *buf,
				size_t count, loff_t *ppos)
{
	char *word __free(kfree) = memdup_user_nul(buf, count);

	if (IS_ERR(word))
		return PTR_ERR(word);
	if (!sysfs_streq(word, "clear"))
		return -EINVAL;
	spin_lock(&sim_spin);
	memset(sim_offences, 0, sizeof(sim_offences));
	atomic64_set(&sim_counters[SIM_VIOLATIONS], 0);
	spin_unlock(&sim_spin);
	return count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(violations);

/* ---- failures ---------------------------------------------------------- */

static struct {
	int error;	/* negative, or 0 if none is set */
	u32 skip;
	u32 count;	/* 0: for ever */
} sim_failures[SIM_EXPORTS];

int sim_fail(enum sim_export which)
{
	int ret = 0;

	spin_lock(&sim_spin);
	if (sim_failures[which].error && sim_failures[which].skip) {
		sim_failures[which].skip--;
	} else if (sim_failures[which].error) {
		ret = sim_failures[which].error;
		if (sim_failures[which].count && !--sim_failures[which].count)
			sim_failures[which].error = 0;
	}
	spin_unlock(&sim_spin);
	if (ret)
		sim_add(SIM_FAILURES_INJECTED, 1);
	return ret;
}

static int fail_show(struct seq_file *s, void *unused)
{
	int i;

	spin_lock(&sim_spin);
	for (i = 0; i < SIM_EXPORTS; i++)
		if (sim_failures[i].error)
			seq_printf(s, "%s %d %u %u\n", sim_clock_names[i],
				   -sim_failures[i].error,
				   sim_failures[i].skip + 1,
				   sim_failures[i].count);
	spin_unlock(&sim_spin);
	return 0;
}

static int sim_errno(const char *word)
{
	static const struct {
		const char *name;
		int value;
	} known[] = {
		{ "EINVAL", EINVAL }, { "ENOMEM", ENOMEM },
		{ "ENOTSUPP", ENOTSUPP }, { "EBUSY", EBUSY },
		{ "ENODEV", ENODEV }, { "EIO", EIO },
		{ "EPERM", EPERM }, { "EAGAIN", EAGAIN },
	};
	int i, value;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(word, known[i].name))
			return -known[i].value;
	if (kstrtoint(word, 0, &value) || !value || abs(value) > MAX_ERRNO)
		return 0;
	return -abs(value);
}

static int sim_which_export(const char *word)
{
	const char *prefix = "nvidia_p2p_";
	size_t n = strlen(prefix);

	if (!strncmp(word, prefix, n))
		word += n;
	for (int i = 0; i < SIM_EXPORTS; i++)
		if (!strcmp(word, sim_clock_names[i] + n))
			return i;
	return -EINVAL;
}

static ssize_t fail_write(struct file *file, const char __user *buf,
			  size_t size, loff_t *ppos)
{
	char *words __free(kfree) = memdup_user_nul(buf, size);
	char name[48], error[16];
	unsigned int nth, count = 1;
	int which, err;

	if (IS_ERR(words))
		return PTR_ERR(words);
	if (sysfs_streq(words, "clear")) {
		spin_lock(&sim_spin);
		memset(sim_failures, 0, sizeof(sim_failures));
		spin_unlock(&sim_spin);
		return size;
	}

	if (sscanf(words, "%47s %15s %u %u", name, error, &nth, &count) < 3)
		return -EINVAL;
	which = sim_which_export(name);
	err = sim_errno(error);
	if (which < 0 || !err || !nth)
		return -EINVAL;

	spin_lock(&sim_spin);
	sim_failures[which].error = err;
	sim_failures[which].skip = nth - 1;
	sim_failures[which].count = count;
	spin_unlock(&sim_spin);
	return size;
}
DEFINE_SHOW_STORE_ATTRIBUTE(fail);

/* ---- injected frees ----------------------------------------------------------- */

static int inject_show(struct seq_file *s, void *unused)
{
	sim_inject_show_plan(s);
	return 0;
}

static ssize_t inject_write(struct file *file, const char __user *buf,
			    size_t size, loff_t *ppos)
{
	char *words __free(kfree) = memdup_user_nul(buf, size);
	int ret = IS_ERR(words) ? PTR_ERR(words) : sim_inject_plan(words);

	return ret ?: size;
}
DEFINE_SHOW_STORE_ATTRIBUTE(inject);

/* ---- one of several words ----------------------------------------------- */

static const char * const sim_layout_names[SIM_LAYOUTS] = {
	[SIM_CONTIGUOUS] = "contiguous",
	[SIM_DESCENDING] = "descending",
	[SIM_HOLES64K] = "holes64k",
	[SIM_HOLES2M] = "holes2m",
	[SIM_FRAGMENTED] = "fragmented",
};

static const char * const sim_free_from_names[SIM_FREE_FROMS] = {
	[SIM_FREE_FROM_TASK] = "task",
	[SIM_FREE_FROM_CLOSE] = "close",
	[SIM_FREE_FROM_KTHREAD] = "kthread",
	[SIM_FREE_FROM_PROCESS] = "process",
};

struct sim_choice {
	const char *file;
	u32 *knob;
	const char * const *names;
	size_t n;
};

static const struct sim_choice sim_choices[] = {
	{ "layout", &sim_knobs.layout, sim_layout_names, SIM_LAYOUTS },
	{ "free_from", &sim_knobs.free_from, sim_free_from_names, SIM_FREE_FROMS },
	{ "inject_from", &sim_knobs.inject_from, sim_free_from_names, SIM_FREE_FROMS },
	{ "hold", &sim_knobs.hold, sim_point_names, SIM_POINTS },
};

static int choice_show(struct seq_file *s, void *unused)
{
	const struct sim_choice *choice = s->private;

	seq_printf(s, "%s\n", choice->names[READ_ONCE(*choice->knob)]);
	return 0;
}

static ssize_t choice_write(struct file *file, const char __user *buf,
			    size_t size, loff_t *ppos)
{
	char *word __free(kfree) = memdup_user_nul(buf, size);
	const struct sim_choice *choice = ((struct seq_file *)file->private_data)->private;
	int i;

	if (IS_ERR(word))
		return PTR_ERR(word);
	i = __sysfs_match_string(choice->names, choice->n, word);
	if (i < 0)
		return i;
	WRITE_ONCE(*choice->knob, i);
	wake_up_all(&sim_held);
	return size;
}
DEFINE_SHOW_STORE_ATTRIBUTE(choice);

/* ---- the seed ----------------------------------------------------------- */

static struct rnd_state sim_rnd;
static u64 sim_seed = 1;

u32 sim_random(void)
{
	u32 n;

	spin_lock(&sim_spin);
	n = prandom_u32_state(&sim_rnd);
	spin_unlock(&sim_spin);
	return n;
}

static void sim_set_seed(u64 seed)
{
	spin_lock(&sim_spin);
	sim_seed = seed;
	prandom_seed_state(&sim_rnd, seed);
	spin_unlock(&sim_spin);
}

static int seed_show(struct seq_file *s, void *unused)
{
	seq_printf(s, "%llu\n", sim_seed);
	return 0;
}

static ssize_t seed_write(struct file *file, const char __user *buf,
			  size_t size, loff_t *ppos)
{
	u64 seed;
	int ret = kstrtoull_from_user(buf, size, 0, &seed);

	if (ret)
		return ret;
	sim_set_seed(seed);
	return size;
}
DEFINE_SHOW_STORE_ATTRIBUTE(seed);

/* ---- memory that is RAM -------------------------------------------------- */

static int coherent_show(struct seq_file *s, void *unused)
{
	seq_printf(s, "%d\n", READ_ONCE(sim_gpu.coherent));
	return 0;
}

static ssize_t coherent_write(struct file *file, const char __user *buf,
			      size_t size, loff_t *ppos)
{
	u8 coherent;
	int ret = kstrtou8_from_user(buf, size, 0, &coherent);

	if (!ret)
		ret = sim_coherent_set(&sim_gpu, coherent);
	return ret ?: size;
}
DEFINE_SHOW_STORE_ATTRIBUTE(coherent);

/* ---- all of it --------------------------------------------------------- */

int sim_lab_init(void)
{
	struct dentry *dir = debugfs_create_dir("nvidia_lab", NULL);
	struct sim_knobs *k = &sim_knobs;
	int i;

	sim_dir = dir;
	sim_clock_init(dir);
	sim_set_seed(sim_seed);

	debugfs_create_file("counters", 0444, dir, NULL, &counters_fops);
	debugfs_create_file("violations", 0644, dir, NULL, &violations_fops);
	debugfs_create_file("fail", 0644, dir, NULL, &fail_fops);
	debugfs_create_file("inject", 0644, dir, NULL, &inject_fops);
	debugfs_create_file("seed", 0644, dir, NULL, &seed_fops);
	debugfs_create_file("coherent", 0644, dir, NULL, &coherent_fops);
	for (i = 0; i < ARRAY_SIZE(sim_choices); i++)
		debugfs_create_file(sim_choices[i].file, 0644, dir,
				    (void *)&sim_choices[i], &choice_fops);

	/* Whether injection points of a client's own mapping come (owndma.c). */
	debugfs_create_bool("own_dma", 0444, dir, &sim_own_dma);
	/* The size of BAR1, of which 36 MiB are never given out. */
	debugfs_create_u64("bar1_bytes", 0644, dir, &k->bar1_bytes);
	/* How long a call at whose point memory is freed waits for the free to be over. */
	debugfs_create_u32("inject_wait_ms", 0644, dir, &k->inject_wait_ms);
	/* Injected frees are held back for as long as this is not 0. */
	debugfs_create_u32("inject_hold", 0644, dir, &k->inject_hold);
	/* How many freed tables, and how many mappings, are kept poisoned. */
	debugfs_create_u32("quarantine_max", 0644, dir, &k->quarantine_max);
	/* Versions that new tables and mappings bear; 0: the header's. */
	debugfs_create_x32("page_table_version", 0644, dir,
			   &k->page_table_version);
	debugfs_create_x32("dma_mapping_version", 0644, dir,
			   &k->dma_mapping_version);
	/* The page size that new tables claim: 0, 1, 2 for 4, 64, 128 KiB. */
	debugfs_create_u32("page_size", 0644, dir, &k->page_size);
	/* New mappings claim one entry less than their table. */
	debugfs_create_u32("dma_entries_short", 0644, dir,
			   &k->dma_entries_short);
	/* New mappings are one for each contiguous run, not for each page. */
	debugfs_create_u32("dma_contiguous", 0644, dir, &k->dma_contiguous);
	/* No device may reach the GPU: NVreg_GrdmaPciTopoCheckOverride=2. */
	debugfs_create_u32("topology_denied", 0644, dir, &k->topology_denied);
	/*
	 * With 0 new mappings have addresses on the bus, past any IOMMU, as with
	 * NVreg_DmaRemapPeerMmio=0: physical ones with bus_offset added.
	 */
	debugfs_create_u32("remap_peer_mmio", 0644, dir, &k->remap_peer_mmio);
	debugfs_create_x64("bus_offset", 0644, dir, &k->bus_offset);
	/* Whether addresses of freed tables are given out again at once. */
	debugfs_create_u32("reuse", 0644, dir, &k->reuse);
	/* Whether to sum up tables and mappings, to see them changed. */
	debugfs_create_u32("verify", 0644, dir, &k->verify);
	return 0;
}

void sim_lab_exit(void)
{
	int i;

	debugfs_remove(sim_dir);
	for (i = 0; i < SIM_LIVE_END; i++)
		if (sim_read(i))
			sim_violation(SIM_BAD_LEFTOVER,
				      "the driver is unloaded with %s at %lld",
				      sim_counter_names[i], sim_read(i));
}
