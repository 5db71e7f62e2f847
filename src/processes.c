// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who is calling. And what processes and their users have left behind: memory that was
 * deregistered where the driver unpins nothing, and is pinned until it is freed.
 */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "shim.h"

void nvpm_process(struct nvpm_process *process)
{
	process->born = nvpm_task_born(current->group_leader);
	process->number = task_tgid_nr(current);
	process->user = __kuid_val(current_uid());
}

s32 nvpm_thread(void)
{
	return task_pid_nr(current);
}

bool nvpm_exiting(void)
{
	return current->flags & PF_EXITING;
}

/* Where a process has the time of its beginning: no process began then. */
#define NVPM_USER (~0ull)

/* What a process, or all processes of a user, have left behind. */
struct nvpm_account {
	struct hlist_node node;
	u64 born;
	u32 number;	/* of the process, or the user */
	u32 registrations;
	u64 pages;
};

struct nvpm_left {
	struct nvpm_account *process;	/* NULL if it is not the process's doing */
	struct nvpm_account *user;
	u64 pages;
};

static DEFINE_HASHTABLE(nvpm_accounts, 6);
static DEFINE_SPINLOCK(nvpm_accounts_lock);

static struct nvpm_account *nvpm_account_find(u64 born, u32 number)
{
	struct nvpm_account *account;

	hash_for_each_possible(nvpm_accounts, account, node, number)
		if (account->number == number && account->born == born)
			return account;
	return NULL;
}

/* Charges what is left to the account, which may have to begin: @new then is it. */
static struct nvpm_account *nvpm_account_charge(struct nvpm_account **new, u64 born,
						u32 number, u64 pages)
{
	struct nvpm_account *account = nvpm_account_find(born, number);

	if (!account) {
		account = *new;
		*new = NULL;
		account->born = born;
		account->number = number;
		hash_add(nvpm_accounts, &account->node, number);
	}
	account->registrations++;
	account->pages += pages;
	return account;
}

/* Takes it off again. Returns the account if nothing is left on it, to be freed. */
static struct nvpm_account *nvpm_account_relieve(struct nvpm_account *account, u64 pages)
{
	if (!account)
		return NULL;
	account->pages -= pages;
	if (--account->registrations)
		return NULL;
	hash_del(&account->node);
	return account;
}

struct nvpm_left *nvpm_process_leaves(const struct nvpm_process *process, u64 pages)
{
	/* What is not counted would not be bounded. */
	struct nvpm_account *new_process = kzalloc_obj(*new_process, GFP_KERNEL | __GFP_NOFAIL);
	struct nvpm_account *new_user = kzalloc_obj(*new_user, GFP_KERNEL | __GFP_NOFAIL);
	struct nvpm_left *left = kzalloc_obj(*left, GFP_KERNEL | __GFP_NOFAIL);

	left->pages = pages;
	spin_lock(&nvpm_accounts_lock);
	/*
	 * A thread of the kernel deregisters what a device had that is reset or removed.
	 * The process has not chosen that, and may go on; its user's bound is wider.
	 */
	if (!(current->flags & PF_KTHREAD))
		left->process = nvpm_account_charge(&new_process, process->born,
						    process->number, pages);
	left->user = nvpm_account_charge(&new_user, NVPM_USER, process->user, pages);
	spin_unlock(&nvpm_accounts_lock);
	kfree(new_process);
	kfree(new_user);
	nvpm_count(NVPM_LEFT_BEHIND, 1);
	return left;
}

void nvpm_left_freed(struct nvpm_left *left)
{
	struct nvpm_account *process, *user;

	spin_lock(&nvpm_accounts_lock);
	process = nvpm_account_relieve(left->process, left->pages);
	user = nvpm_account_relieve(left->user, left->pages);
	spin_unlock(&nvpm_accounts_lock);
	kfree(process);
	kfree(user);
	kfree(left);
	nvpm_count(NVPM_LEFT_BEHIND, -1);
}

static bool nvpm_account_full(u64 born, u32 number, u32 registrations, u64 pages)
{
	const struct nvpm_account *account;
	bool full = false;

	spin_lock(&nvpm_accounts_lock);
	account = nvpm_account_find(born, number);
	if (account)
		full = account->registrations >= registrations || account->pages >= pages;
	spin_unlock(&nvpm_accounts_lock);
	return full;
}

bool nvpm_process_full(const struct nvpm_process *process, u32 registrations, u64 pages)
{
	return nvpm_account_full(process->born, process->number, registrations, pages);
}

bool nvpm_user_full(const struct nvpm_process *process, u32 registrations, u64 pages)
{
	return nvpm_account_full(NVPM_USER, process->user, registrations, pages);
}
