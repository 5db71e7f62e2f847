// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How long each export takes, and how long it would take in the real driver.
 *
 * clocks   in debugfs: "name calls ticks" on each line, ticks of get_cycles(). A
 *          measurement subtracts what was there before.
 * costs    the knob: 1 makes calls that pin and unpin take what is published of
 *          the real driver, on a V100: a part for the call, spent with the API
 *          lock held, and one for each 64 KiB page. What the simulation itself
 *          takes is within that; if it takes more, "costs_exceeded" in counters
 *          says how often.
 */
#include <linux/debugfs.h>
#include <linux/kernel.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/timex.h>

#include "sim.h"

static const struct sim_cost {
	u32 call_ns;
	u32 page_ns;
} sim_costs[SIM_EXPORTS] = {
	[SIM_GET_PAGES] = { 68000, 200 },
	[SIM_GET_PAGES_PERSISTENT] = { 68000, 200 },
	[SIM_PUT_PAGES] = { 37000, 100 },
	[SIM_PUT_PAGES_PERSISTENT] = { 37000, 100 },
};

static struct {
	atomic64_t calls;
	atomic64_t ticks;
} sim_clocks[SIM_CLOCKS];

/*
 * Ticks first: whatever else is done here is the driver's, and not of whoever
 * calls it. A measurement takes the driver's ticks from those of its caller, so
 * that reading another clock before this one would count as the client's work.
 */
struct sim_call sim_clock_start(int which)
{
	struct sim_call call = { .began = get_cycles() };

	call.which = which;
	if (READ_ONCE(sim_knobs.costs))
		call.began_ns = local_clock();
	return call;
}

void sim_clock_stop(struct sim_call *call)
{
	u64 ticks = get_cycles() - call->began;

	atomic64_inc(&sim_clocks[call->which].calls);
	atomic64_add(ticks, &sim_clocks[call->which].ticks);
}

/* Every export starts here, and stops its clock at the end of the scope. */
struct sim_call sim_enter(enum sim_export which)
{
	struct sim_call call = sim_clock_start(which);

	might_sleep();
	return call;
}

static void sim_spend(const struct sim_call *call, u64 ns)
{
	u64 until = call->began_ns + ns;

	if (local_clock() > until)
		sim_add(SIM_COSTS_EXCEEDED, 1);
	while (local_clock() < until)
		cpu_relax();
}

/* The part of the cost that every call has. The API lock is held. */
void sim_spend_call(const struct sim_call *call)
{
	if (call->began_ns)
		sim_spend(call, sim_costs[call->which].call_ns);
}

/* All of the cost, for a call that is over. */
void sim_spend_all(const struct sim_call *call, u32 pages)
{
	const struct sim_cost *cost = &sim_costs[call->which];

	if (call->began_ns)
		sim_spend(call, cost->call_ns + (u64)cost->page_ns * pages);
}

s64 sim_clock_calls(int which)
{
	return atomic64_read(&sim_clocks[which].calls);
}

static int clocks_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < SIM_CLOCKS; i++)
		seq_printf(s, "%s %lld %lld\n", sim_clock_names[i],
			   sim_clock_calls(i),
			   (s64)atomic64_read(&sim_clocks[i].ticks));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(clocks);

void sim_clock_init(struct dentry *dir)
{
	debugfs_create_file("clocks", 0444, dir, NULL, &clocks_fops);
	debugfs_create_u32("costs", 0644, dir, &sim_knobs.costs);
}
