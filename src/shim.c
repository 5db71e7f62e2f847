// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module as the kernel sees it: what modinfo shows, parameters with a file in
 * sysfs; and what the Rust half asks of the kernel itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat.h"
#include "marker/marker.h"
#include "shim.h"
#ifdef NVPM_KUNIT
#include "kunit/helpers.h"
#endif

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("GPUDirect RDMA: NVIDIA GPU memory for the RDMA core");
MODULE_VERSION(NVPM_VERSION);

/* What Rust stands on in this module: docs/grounds.md. */
MODULE_INFO(ground, NVPM_GROUND);

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

void nvpm_client_extend(struct nvpm_client *client)
{
#ifdef NVPM_CORE_EX
	static_assert(sizeof(struct peer_memory_client_ex) == sizeof(*client));
	static_assert(offsetof(struct peer_memory_client_ex, ex_size) ==
		      offsetof(struct nvpm_client, ex_size));
	static_assert(offsetof(struct peer_memory_client_ex, flags) ==
		      offsetof(struct nvpm_client, flags));

	client->ex_size = sizeof(struct peer_memory_client_ex);
	client->flags = PEER_MEM_INVALIDATE_UNMAPS;
	/* Says that the fields behind are there. */
	client->client.version[ARRAY_SIZE(client->client.version) - 1] = 1;
#endif
}

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

void nvpm_pause(void)
{
	msleep(20);
}

void nvpm_give_way(void)
{
	cond_resched();
}

static DEFINE_RATELIMIT_STATE(nvpm_complaints, 5 * HZ, 10);

bool nvpm_may_complain(void)
{
	/* Under this name it reports how many messages it has suppressed. */
	return ___ratelimit(&nvpm_complaints, KBUILD_MODNAME);
}

#ifdef NVPM_KUNIT
void nvpm_kunit_complain_again(void)
{
	ratelimit_state_init(&nvpm_complaints, 5 * HZ, 10);
}
#endif

bool nvpm_module_get(void)
{
	return try_module_get(THIS_MODULE);
}

void nvpm_module_put(void)
{
	module_put(THIS_MODULE);
}
