// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The process that calls, and time. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

TEST(a_thread_of_a_process)
{
	struct nvpm_process process = { 0 };

	nvpm_current_process(&process);
	/* Of the process, whose thread has a number and a time of its own. */
	SAME(5, process.born);
	SAME(40, process.tgid);
	SAME(1000, process.uid);
	SAME(42, nvpm_current_tid());
}

TEST(its_name)
{
	u8 comm[17];

	memset(comm, 0xee, sizeof(comm));
	comm[15] = 0;
	nvpm_current_comm(comm);
	SAME(0, comm[15]);
	SAME_TEXT("the leader's ow", (char *)comm);
	SAME(0xee, comm[16]);
}

TEST(is_about_to_end)
{
	current->flags = ~(PF_EXITING);
	TRUE(!nvpm_current_exiting());
	current->flags = PF_EXITING;
	TRUE(nvpm_current_exiting());
}

TEST(gives_way)
{
	nvpm_cond_resched();
	SAME(1, rescheduled);
}

TEST(time_in_seconds)
{
	SAME(1000, nvpm_seconds());
	jiffies += 7 * HZ - 1;
	SAME(1006, nvpm_seconds());
	jiffies += 1;
	SAME(1007, nvpm_seconds());
}
