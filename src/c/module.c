// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module's metadata and parameters, and the kernel's macros and inline functions
 * that Rust calls.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/cred.h>
#include <linux/jiffies.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

#include "../marker/marker.h"
#include "compat.h"
#include "nvpm.h"
#ifdef NVPM_KUNIT
#include "../kunit/helpers.h"
#endif

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("GPUDirect RDMA: NVIDIA GPU memory for the RDMA core");
MODULE_VERSION(NVPM_VERSION);

/* How the Rust was compiled: docs/building.md. */
MODULE_INFO(rust, NVPM_RUST);

const char nvpm_version[] = NVPM_VERSION;
/* Not _GPL: a module beside a proprietary driver may have no such symbol. */
EXPORT_SYMBOL(nvpm_version);

static int nvpm_switch_set(const char *text, const struct kernel_param *param)
{
	uint value;

	if (!text || kstrtouint(text, 0, &value) || value > 1) {
		pr_err("%s=%s: the values of this parameter are 0 and 1 (modinfo nv_peer_mem explains them); look for it in /etc/modprobe.d\n",
		       param->name, text ?: "");
		return -EINVAL;
	}
	*(uint *)param->arg = value;
	return 0;
}

static const struct kernel_param_ops nvpm_switch = {
	.set = nvpm_switch_set,
	.get = param_get_uint,
};

uint nvpm_peerdirect_support;
module_param_cb(peerdirect_support, &nvpm_switch, &nvpm_peerdirect_support, 0444);
__MODULE_PARM_TYPE(peerdirect_support, "0 or 1");
MODULE_PARM_DESC(peerdirect_support,
		 "0: current RDMA cores (default); 1: MLNX_OFED 4.9 LTS");

uint nvpm_persistent_api_support = 1;
module_param_cb(persistent_api_support, &nvpm_switch, &nvpm_persistent_api_support, 0444);
__MODULE_PARM_TYPE(persistent_api_support, "0 or 1");
MODULE_PARM_DESC(persistent_api_support,
		 "1: pin until deregistration where the driver can (default); 0: revoke registrations when GPU memory is freed");

/* The same figures stand in abi.rs. */
static_assert(offsetof(struct peer_memory_client, acquire) == 80);
static_assert(offsetof(struct peer_memory_client, release) == 128);
static_assert(sizeof(struct nvpm_client) == 152);

#ifdef NVPM_CORE_EX
static_assert(sizeof(struct peer_memory_client_ex) == sizeof(struct nvpm_client));
static_assert(offsetof(struct peer_memory_client_ex, ex_size) ==
	      offsetof(struct nvpm_client, ex_size));
static_assert(offsetof(struct peer_memory_client_ex, flags) ==
	      offsetof(struct nvpm_client, flags));
static_assert(PEER_MEM_INVALIDATE_UNMAPS == 1);
const bool nvpm_core_has_ex = true;
#else
const bool nvpm_core_has_ex;
#endif

const u64 nvpm_page_size = PAGE_SIZE;

bool nvpm_peermem_loaded(void)
{
	/*
	 * The set of all modules is not exported, but each module is in it; and
	 * kset_find_obj() is for GPL modules only.
	 */
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *module;
	bool found = false;

	spin_lock(&modules->list_lock);
	list_for_each_entry(module, &modules->list, entry)
		found |= !strcmp(kobject_name(module) ?: "", "nvidia_peermem");
	spin_unlock(&modules->list_lock);
	return found;
}

bool nvpm_try_module_get(void)
{
	return try_module_get(THIS_MODULE);
}

void nvpm_module_put(void)
{
	module_put(THIS_MODULE);
}

void nvpm_cond_resched(void)
{
	cond_resched();
}

static DEFINE_RATELIMIT_STATE(nvpm_warnings, 5 * HZ, 10);

bool nvpm_ratelimit(void)
{
	/* Under this name it reports how many messages it has suppressed. */
	return ___ratelimit(&nvpm_warnings, KBUILD_MODNAME);
}

#ifdef NVPM_KUNIT
void nvpm_kunit_warn_again(void)
{
	ratelimit_state_init(&nvpm_warnings, 5 * HZ, 10);
}
#endif

/* The kernel's clocks are for GPL modules only. */
u32 nvpm_seconds(void)
{
	return jiffies / HZ;
}

void nvpm_current_process(struct nvpm_process *process)
{
	process->born = nvpm_task_born(current->group_leader);
	process->tgid = task_tgid_nr(current);
	process->uid = __kuid_val(current_uid());
}

void nvpm_current_comm(u8 *comm)
{
	/* The process may be changing it: its last byte stays zero. */
	memcpy(comm, current->group_leader->comm, TASK_COMM_LEN - 1);
}

s32 nvpm_current_tid(void)
{
	return task_pid_nr(current);
}

bool nvpm_current_exiting(void)
{
	return current->flags & PF_EXITING;
}

static spinlock_t nvpm_locks[NVPM_LOCKS] = {
	[NVPM_LOCK_REGISTRY] = __SPIN_LOCK_UNLOCKED(nvpm_locks[NVPM_LOCK_REGISTRY]),
	[NVPM_LOCK_PAIRS] = __SPIN_LOCK_UNLOCKED(nvpm_locks[NVPM_LOCK_PAIRS]),
};

void nvpm_lock(enum nvpm_lock_name name)
{
	spin_lock(&nvpm_locks[name]);
}

void nvpm_unlock(enum nvpm_lock_name name)
{
	spin_unlock(&nvpm_locks[name]);
}

/* In C, since kernels that check indirect calls go by the type that C gives a function. */
static void nvpm_handle_callback(void *number)
{
	nvpm_revoke((uintptr_t)number);
}

int nvpm_callbacks_begin(void)
{
	return nvpm_callback_serve(NVPM_CALLBACK_INTERFACE, nvpm_handle_callback);
}

void nvpm_callbacks_end(void)
{
	nvpm_callback_serve(NVPM_CALLBACK_INTERFACE, NULL);
}

/* The kernel crate has no read-write semaphore, in any version. */
static DECLARE_RWSEM(nvpm_unpin_rwsem);

void nvpm_unpin_lock(bool exclusive)
{
	if (exclusive)
		down_write(&nvpm_unpin_rwsem);
	else
		down_read(&nvpm_unpin_rwsem);
}

void nvpm_unpin_unlock(bool exclusive)
{
	if (exclusive)
		up_write(&nvpm_unpin_rwsem);
	else
		up_read(&nvpm_unpin_rwsem);
}

/*
 * One queue for all registrations: hardly anybody ever waits. The crate's CondVar has to
 * be pinned in each record, which would cost every record its size.
 */
static DECLARE_WAIT_QUEUE_HEAD(nvpm_phase_queue);
static atomic_t nvpm_phase_wakes;

u32 nvpm_phase_count(void)
{
	return atomic_read(&nvpm_phase_wakes);
}

void nvpm_phase_wait(u32 count)
{
	wait_event(nvpm_phase_queue, (u32)atomic_read(&nvpm_phase_wakes) != count);
}

void nvpm_phase_wake(void)
{
	atomic_inc(&nvpm_phase_wakes);
	wake_up_all(&nvpm_phase_queue);
}
