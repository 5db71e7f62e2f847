// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The module's metadata and parameters, its check for another module that serves the same memory,
 * functions that take and put references to the module, and the rate limit of its warnings.
 */
/* The module says its own name, also if its file is called nvidia_peermem.ko. */
#define pr_fmt(fmt) "nv_peer_mem: " fmt

#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/ratelimit.h>
#include <linux/string.h>

#include "../marker/marker.h"
#include "nvpm.h"
#ifdef NVPM_KUNIT
#include "../kunit/helpers.h"
#endif

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("GPUDirect RDMA: NVIDIA GPU memory for the RDMA core");
/* The identity has the version and the checksum of the sources (build/identity). */
MODULE_VERSION(NVPM_BUILD);

/* The value says how the module's Rust code was compiled (docs/building.md). */
MODULE_INFO(rust, NVPM_RUST);

const char nvpm_version[] = NVPM_VERSION;
/*
 * The export is not GPL-only, because a module that uses a proprietary driver must not export
 * GPL-only symbols.
 */
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

/*
 * Returns the name of a module if modules that serve GPU memory have this name, and otherwise NULL.
 * This module has the first name or, if it was built with NVPM_NAME=nvidia_peermem, the second.
 */
static const char *nvpm_serving_name(const struct kobject *module)
{
	static const char *const names[] = { "nv_peer_mem", "nvidia_peermem" };
	/* A module that is being loaded may not have a name yet. */
	const char *name = kobject_name(module) ?: "";
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return names[i];
	return NULL;
}

bool nvpm_other_serves(void)
{
	/*
	 * The core is not asked, because two clients of one name are not refused everywhere: cores
	 * without files in sysfs take both, and each then pins the same memory. Other cores refuse
	 * the second one with a stack trace in the kernel's log, which monitoring reports as a fault
	 * of the kernel. The service cannot look either, because modprobe and the image load the
	 * module without it.
	 *
	 * The kernel does not export the set of all modules, but this module's own object has a
	 * pointer to the set. kset_find_obj() is only for GPL modules, so the loop below searches
	 * the set.
	 */
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *module;
	const char *other = NULL;

	spin_lock(&modules->list_lock);
	list_for_each_entry(module, &modules->list, entry)
		if (module != &THIS_MODULE->mkobj.kobj)
			other = nvpm_serving_name(module) ?: other;
	spin_unlock(&modules->list_lock);
	if (other)
		pr_err("%s is loaded and serves the same memory: unload it (modprobe -r %s) and keep it from being loaded again (echo 'blacklist %s' >/etc/modprobe.d/nv_peer_mem-%s.conf)\n",
		       other, other, other, other);
	return other;
}

bool nvpm_try_module_get(void)
{
	return try_module_get(THIS_MODULE);
}

void nvpm_module_put(void)
{
	module_put(THIS_MODULE);
}

static DEFINE_RATELIMIT_STATE(nvpm_warnings, 5 * HZ, 10);

bool nvpm_ratelimit(void)
{
	/* ___ratelimit() reports the number of suppressed messages under this name. */
	return ___ratelimit(&nvpm_warnings, "nv_peer_mem");
}

#ifdef NVPM_KUNIT
void nvpm_kunit_warn_again(void)
{
	ratelimit_state_init(&nvpm_warnings, 5 * HZ, 10);
}
#endif
