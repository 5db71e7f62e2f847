// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The files for tests, in debugfs under nvidia_lab: counters, violations, knobs, failures, and
 * the times of calls. README.md describes each file.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/prandom.h>
#include <linux/sched/clock.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timex.h>

#include "sim.h"

static struct dentry *sim_dir;
static DEFINE_SPINLOCK(sim_spin);	/* violations, failures, random numbers */

static const char * const sim_counter_names[] = SIM_COUNTERS(__stringify);
static const char * const sim_clock_names[] = SIM_CLOCKS(__stringify);
static const char * const sim_layout_names[] = SIM_LAYOUTS(__stringify);
static const char * const sim_freer_names[] = SIM_FREERS(__stringify);
static const char * const sim_cost_names[] = SIM_COSTS(__stringify);
const char * const sim_point_names[] = SIM_POINTS(__stringify);

/* ---- counters and clocks ------------------------------------------------ */

static atomic64_t sim_counters[ARRAY_SIZE(sim_counter_names)];

static struct {
	atomic64_t calls;
	atomic64_t ticks;
} sim_clocks[ARRAY_SIZE(sim_clock_names)];

void sim_add(enum sim_counter which, s64 n)
{
	atomic64_add(n, &sim_counters[which]);
}

/*
 * The function reads the ticks first, so that its other work counts as the driver's. A measurement
 * subtracts the driver's ticks from the caller's, so work before the reading would count as the
 * client's.
 */
struct sim_call sim_enter(enum sim_clock which)
{
	struct sim_call call = { .began = get_cycles(), .which = which };

	might_sleep();
	return call;
}

void sim_leave(struct sim_call *call)
{
	u64 ticks = get_cycles() - call->began;

	atomic64_inc(&sim_clocks[call->which].calls);
	atomic64_add(ticks, &sim_clocks[call->which].ticks);
}

static void show_counters(struct seq_file *s)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sim_counters); i++)
		seq_printf(s, "%s %lld\n", sim_counter_names[i],
			   (s64)atomic64_read(&sim_counters[i]));
	seq_printf(s, "live_bar1_bytes %llu\n", READ_ONCE(sim_gpu.bar1_used));
	for (i = 0; i < SIM_EXPORTS; i++)
		seq_printf(s, "calls_nvidia_p2p_%s %lld\n", sim_clock_names[i],
			   (s64)atomic64_read(&sim_clocks[i].calls));
	for (i = SIM_none + 1; i < ARRAY_SIZE(sim_point_names); i++)
		seq_printf(s, "injected_%s %lld\n", sim_point_names[i], sim_injected(i));
}

static void show_clocks(struct seq_file *s)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(sim_clocks); i++)
		seq_printf(s, "%s%s %lld %lld\n", i < SIM_EXPORTS ? "nvidia_p2p_" : "",
			   sim_clock_names[i], (s64)atomic64_read(&sim_clocks[i].calls),
			   (s64)atomic64_read(&sim_clocks[i].ticks));
}

/* ---- costs ---------------------------------------------------------------- */

/*
 * The costs are in nanoseconds, for each call and for each page. They are the same for persistent
 * pins, for which the driver makes the same mappings.
 *
 * dynamic: the driver maps pinned memory into BAR1, as drivers up to 575 do, and later drivers
 * do if BAR1 is smaller than the GPU's memory. gdrcopy's pull request 129 has figures of a V100:
 * 68 to 70 us to pin 64 KiB to 1 MiB, and 37 to 38 us to unpin them; beyond that 0.2 and 0.1 us
 * for each page. (gdrcopy's README has 1346 and 677 us for 64 KiB, on a machine with eight V100,
 * where only the number of calls matters.) There is no published figure for a page that is
 * pinned already. The value is an estimate: locks and look-ups, without page tables and their
 * flush.
 *
 * static: BAR1 shows all of the GPU's memory, as with drivers from 580 on if BAR1 is large
 * enough. Then a page that is pinned already costs as much as any other. The figures were
 * measured on an H100 of 80 GB with driver 580.159.04, through ioctls of the resource manager,
 * less the 2.5 us of an ioctl itself: 4.1 us to map memory into BAR1 and 1.3 us to unmap it, for
 * 64 KiB as well as for 1 GiB, and 1.8 us for any other call about the GPU. A pin maps and
 * registers a callback; an unpin looks up and unmaps; both are rounded up. The cost of a page is
 * an estimate: half of the above, because there are no page tables.
 */
static const u32 sim_costs[][SIM_WORKS] = {
	[SIM_dynamic] = {
		[SIM_GET] = 68000, [SIM_GET_AGAIN] = 15000, [SIM_GET_PAGE] = 200,
		[SIM_PUT] = 37000, [SIM_PUT_AGAIN] = 8000, [SIM_PUT_PAGE] = 100,
	},
	[SIM_static] = {
		[SIM_GET] = 6000, [SIM_GET_AGAIN] = 6000, [SIM_GET_PAGE] = 100,
		[SIM_PUT] = 4000, [SIM_PUT_AGAIN] = 4000, [SIM_PUT_PAGE] = 50,
	},
};

/*
 * Begins work that has a cost. A caller that needs a lock takes it before, because waiting for a
 * lock is no work.
 */
u64 sim_begin(void)
{
	return sim_knob(costs) == SIM_simulated ? 0 : local_clock();
}

/*
 * Waits until the work has taken as much time as its cost says. The simulation's own time is
 * included. Returns the time at which the next work begins, if no lock is taken in between.
 */
u64 sim_spend(u64 began, enum sim_work work, u32 times)
{
	u64 end = began + (u64)sim_costs[sim_knob(costs)][work] * times;

	while (began && local_clock() < end)
		cpu_relax();
	return end;
}

/* ---- violations -------------------------------------------------------- */

static struct sim_offence {
	const char *kind;
	u64 count;
	char text[240];
} sim_offences[32];	/* more than the kinds of violations */

void sim_violation(const char *kind, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	struct sim_offence *offence = sim_offences;
	bool first;
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	spin_lock(&sim_spin);
	while (offence->kind && strcmp(offence->kind, kind))
		offence++;
	offence->kind = kind;
	first = !offence->count++;
	if (first)
		scnprintf(offence->text, sizeof(offence->text), "%pV (%s, pid %d)", &vaf,
			  current->comm, task_pid_nr(current));
	spin_unlock(&sim_spin);
	va_end(args);

	if (first)
		pr_err("violation: %s: %s\n", kind, offence->text);
}

static void show_violations(struct seq_file *s)
{
	const struct sim_offence *offence;

	spin_lock(&sim_spin);
	for (offence = sim_offences; offence->kind; offence++)
		seq_printf(s, "%s %llu %s\n", offence->kind, offence->count, offence->text);
	spin_unlock(&sim_spin);
}

static int store_violations(const char *words)
{
	if (strcmp(words, "clear"))
		return -EINVAL;
	spin_lock(&sim_spin);
	memset(sim_offences, 0, sizeof(sim_offences));
	spin_unlock(&sim_spin);
	return 0;
}

/* ---- failures ---------------------------------------------------------- */

static struct sim_failure {
	int error;	/* 0 if none is set */
	u32 skip;
	u32 count;	/* 0: for ever */
} sim_failures[SIM_EXPORTS];

int sim_fail(enum sim_clock which)
{
	struct sim_failure *failure = &sim_failures[which];
	int error;

	spin_lock(&sim_spin);
	error = failure->error;
	if (error && failure->skip) {
		failure->skip--;
		error = 0;
	} else if (error && failure->count && !--failure->count) {
		failure->error = 0;
	}
	spin_unlock(&sim_spin);
	sim_add(SIM_failures_injected, !!error);
	return -error;
}

static int store_fail(const char *words)
{
	static const char * const names[] = {
		"EINVAL", "ENOMEM", "ENOTSUPP", "EBUSY", "ENODEV", "EIO",
	};
	static const int values[] = { EINVAL, ENOMEM, ENOTSUPP, EBUSY, ENODEV, EIO };
	struct sim_failure failure = { .count = 1 };
	char name[48], error[16];
	int which, value;

	if (!strcmp(words, "clear")) {
		spin_lock(&sim_spin);
		memset(sim_failures, 0, sizeof(sim_failures));
		spin_unlock(&sim_spin);
		return 0;
	}
	if (sscanf(words, "%47s %15s %u %u", name, error, &failure.skip, &failure.count) < 3)
		return -EINVAL;
	which = match_string(sim_clock_names, SIM_EXPORTS, name);
	value = match_string(names, ARRAY_SIZE(names), error);
	if (which < 0 || value < 0 || !failure.skip--)
		return -EINVAL;
	failure.error = values[value];
	spin_lock(&sim_spin);
	sim_failures[which] = failure;
	spin_unlock(&sim_spin);
	return 0;
}

/* ---- random numbers ----------------------------------------------------- */

static struct rnd_state sim_rnd;

u32 sim_random(void)
{
	u32 n;

	spin_lock(&sim_spin);
	n = prandom_u32_state(&sim_rnd);
	spin_unlock(&sim_spin);
	return n;
}

static void sim_start_random(void)
{
	spin_lock(&sim_spin);
	prandom_seed_state(&sim_rnd, sim_knob(seed));
	spin_unlock(&sim_spin);
}

/* ---- the files ---------------------------------------------------------- */

#define SIM_KNOB_FILE(word)	{ .name = #word, .knob = SIM_KNOB_##word }

static const struct sim_file {
	const char *name;
	void (*show)(struct seq_file *s);
	int (*store)(const char *words);
	enum sim_knob knob;
} sim_files[] = {
	{ .name = "counters", .show = show_counters },
	{ .name = "clocks", .show = show_clocks },
	{ .name = "violations", .show = show_violations, .store = store_violations },
	{ .name = "fail", .store = store_fail },
	{ .name = "inject", .store = sim_inject_plan },
}, sim_knob_files[] = SIM_KNOBS(SIM_KNOB_FILE);

u64 sim_knobs[ARRAY_SIZE(sim_knob_files)] = {
	[SIM_KNOB_inject_from] = SIM_kthread,
	[SIM_KNOB_bar1_bytes] = 1ULL << 40,
	[SIM_KNOB_inject_wait_ms] = 10000,
	[SIM_KNOB_quarantine_max] = 1024,
	[SIM_KNOB_verify] = 1,
	[SIM_KNOB_page_table_version] = NVIDIA_P2P_PAGE_TABLE_VERSION,
	[SIM_KNOB_dma_mapping_version] = NVIDIA_P2P_DMA_MAPPING_VERSION,
	[SIM_KNOB_page_size] = NVIDIA_P2P_PAGE_SIZE_64KB,
	[SIM_KNOB_remap_peer_mmio] = 1,
	[SIM_KNOB_seed] = 1,
};

/* The knobs whose values are words. */
static const struct {
	const char * const *names;
	size_t n;
} sim_words[ARRAY_SIZE(sim_knobs)] = {
	[SIM_KNOB_layout] = { sim_layout_names, ARRAY_SIZE(sim_layout_names) },
	[SIM_KNOB_free_from] = { sim_freer_names, ARRAY_SIZE(sim_freer_names) },
	[SIM_KNOB_inject_from] = { sim_freer_names, ARRAY_SIZE(sim_freer_names) },
	[SIM_KNOB_costs] = { sim_cost_names, ARRAY_SIZE(sim_cost_names) },
	[SIM_KNOB_hold] = { sim_point_names, ARRAY_SIZE(sim_point_names) },
};

static void show_knob(struct seq_file *s, enum sim_knob knob)
{
	u64 value = READ_ONCE(sim_knobs[knob]);

	if (sim_words[knob].n)
		seq_printf(s, "%s\n", sim_words[knob].names[value]);
	else
		seq_printf(s, "%llu\n", value);
}

static int store_knob(enum sim_knob knob, const char *word)
{
	u64 value;
	int ret;

	if (sim_words[knob].n) {
		ret = match_string(sim_words[knob].names, sim_words[knob].n, word);
		value = ret;
	} else {
		ret = kstrtoull(word, 0, &value);
	}
	if (ret < 0)
		return ret;
	WRITE_ONCE(sim_knobs[knob], value);
	if (knob == SIM_KNOB_seed)
		sim_start_random();
	if (knob == SIM_KNOB_quarantine_max)
		sim_quarantine_trim(value);
	wake_up_all(&sim_held);
	return 0;
}

static int file_show(struct seq_file *s, void *unused)
{
	const struct sim_file *file = s->private;

	if (file->show)
		file->show(s);
	else if (!file->store)
		show_knob(s, file->knob);
	return 0;
}

static ssize_t file_write(struct file *file, const char __user *buf, size_t size, loff_t *ppos)
{
	char *words __free(kfree) = memdup_user_nul(buf, size);
	const struct sim_file *of = ((struct seq_file *)file->private_data)->private;
	int ret = -EINVAL;

	if (IS_ERR(words))
		return PTR_ERR(words);
	if (of->store)
		ret = of->store(strim(words));
	else if (!of->show)
		ret = store_knob(of->knob, strim(words));
	return ret ?: size;
}
DEFINE_SHOW_STORE_ATTRIBUTE(file);

static void sim_create(const struct sim_file *file, size_t n)
{
	for (; n--; file++)
		debugfs_create_file(file->name, 0644, sim_dir, (void *)file, &file_fops);
}

void sim_lab_init(void)
{
	sim_start_random();
	sim_dir = debugfs_create_dir("nvidia_lab", NULL);
	sim_create(sim_files, ARRAY_SIZE(sim_files));
	sim_create(sim_knob_files, ARRAY_SIZE(sim_knob_files));
}

void sim_lab_exit(void)
{
	debugfs_remove(sim_dir);
}
