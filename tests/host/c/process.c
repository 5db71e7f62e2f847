// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the functions that return data of the calling process, and the time. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

TEST(a_thread_of_a_process)
{
	struct nvpm_process process = { 0 };

	nvpm_current_process(&process);
	/*
	 * The values must be those of the process, although the calling thread has another number
	 * and another start time.
	 */
	SAME(5, process.born);
	SAME(40, process.tgid);
	SAME(1000, process.uid);
	SAME(42, nvpm_current_tid());
	/* The user does not matter, but both other values do. */
	process.uid++;
	TRUE(nvpm_is_current(&process));
	process.tgid = 42;
	TRUE(!nvpm_is_current(&process));
	process.tgid = 40;
	process.born++;
	TRUE(!nvpm_is_current(&process));
}

/* Returns the user for whom a registration counts if its process is in this namespace. */
static u32 user_in(struct user_namespace *ns)
{
	struct nvpm_process process = { 0 };
	struct user_namespace *before = current->cred.user_ns;

	current->cred.user_ns = ns;
	nvpm_current_process(&process);
	current->cred.user_ns = before;
	return process.uid;
}

TEST(a_users_namespaces_count_for_that_user)
{
	struct user_namespace *first = current->cred.user_ns;
	struct user_namespace of_root = { .parent = first, .owner = { 0 } };
	struct user_namespace of_user = { .parent = first, .owner = { 2000 } };
	struct user_namespace within = { .parent = &of_user, .owner = { 100001 } };
	struct user_namespace within_roots = { .parent = &of_root, .owner = { 3000 } };
	struct user_namespace by_root_within = { .parent = &of_user, .owner = { 0 } };

	SAME(1000, user_in(first));
	SAME(1000, user_in(&of_root));
	SAME(2000, user_in(&of_user));
	SAME(2000, user_in(&within));
	SAME(3000, user_in(&within_roots));
	SAME(2000, user_in(&by_root_within));
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
	/* With HZ=300, this number no longer fits 32 bits after 166 days. */
	jiffies = (1UL << 32) + 5 * HZ;
	SAME((1UL << 32) / HZ + 5, nvpm_seconds());
}
