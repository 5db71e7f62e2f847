// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the module's parameters, and its check for other modules. */
#include <stdio.h>

#include "linux.h"
#include "nvpm.h"
#include "test.h"

extern const struct kernel_param param_peerdirect_support, param_persistent_api_support;

static int set(const char *text)
{
	const struct kernel_param *param = &param_persistent_api_support;

	last_line[0] = 0;
	return param->ops->set(text, param);
}

TEST(parameters)
{
	SAME(0, nvpm_peerdirect_support);
	SAME(1, nvpm_persistent_api_support);
	SAME(0, set("0\n"));
	SAME(0, nvpm_persistent_api_support);
	SAME(0, set("1"));
	SAME(1, nvpm_persistent_api_support);
	SAME(0, param_peerdirect_support.ops->set("1", &param_peerdirect_support));
	SAME(1, nvpm_peerdirect_support);
	SAME(0444, param_peerdirect_support.perm);
	SAME(0444, param_persistent_api_support.perm);
	SAME_TEXT("", last_line);
}

TEST(parameters_that_are_no_switch)
{
	static const char *const wrong[] = { "2", "-1", "yes", "", "4294967297", "0x10" };
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		SAME(-EINVAL, set(wrong[i]));
		TRUE(strstr(last_line, "<3>nv_peer_mem: persistent_api_support="));
		TRUE(strstr(last_line, wrong[i]));
		SAME(1, nvpm_persistent_api_support);
	}
	SAME(-EINVAL, set(NULL));
	TRUE(strstr(last_line, "persistent_api_support=:"));
}

/* What the module asks for: ten warnings in five seconds. The kernel's own function counts them. */
int ___ratelimit(struct ratelimit_state *state, const char *name)
{
	SAME(5 * HZ, state->interval);
	SAME(10, state->burst);
	SAME_TEXT("nv_peer_mem", name);
	return 1;
}

TEST(warnings_are_limited)
{
	TRUE(nvpm_ratelimit());
}

TEST(a_reference_keeps_the_module)
{
	this_module.references = 1;
	TRUE(nvpm_try_module_get());
	SAME(2, this_module.references);
	nvpm_module_put();
	SAME(1, this_module.references);
	nvpm_module_put();
	TRUE(!nvpm_try_module_get());
	SAME(0, this_module.references);
}

static struct kset modules;
static struct kobject objects[3];

static void load(const char *first, const char *second, const char *third)
{
	const char *const names[] = { first, second, third };
	int i;

	modules.list = (struct list_head){ &modules.list, &modules.list };
	this_module.mkobj.kobj.kset = &modules;
	for (i = 0; i < 3; i++) {
		objects[i].name = names[i];
		list_add_tail(&objects[i].entry, &modules.list);
	}
}

static void check_other(const char *name)
{
	char expected[400];

	last_line[0] = 0;
	TRUE(nvpm_other_serves());
	snprintf(expected, sizeof(expected),
		 "<3>nv_peer_mem: %s is loaded and serves the same memory: unload it (modprobe -r %s) and keep it from being loaded again (echo 'blacklist %s' >/etc/modprobe.d/nv_peer_mem-%s.conf)\n",
		 name, name, name, name);
	SAME_TEXT(expected, last_line);
	TRUE(!modules.list_lock.held);
}

TEST(another_module_serves)
{
	load("nvidia_peermem", NULL, "nvidia");
	check_other("nvidia_peermem");
	load("nvidia", NULL, "nvidia_peermem");
	check_other("nvidia_peermem");
	load("nv_peer_mem", NULL, "nvidia");
	check_other("nv_peer_mem");
}

/* The module's own object, which the kernel adds before the module's code runs, does not count. */
static void alone_as(const char *name)
{
	/* A module that is being loaded may not have a name yet. */
	load("nvidia", NULL, "nvidia_peermem2");
	this_module.mkobj.kobj.name = name;
	list_add_tail(&this_module.mkobj.kobj.entry, &modules.list);
	last_line[0] = 0;
	TRUE(!nvpm_other_serves());
	SAME_TEXT("", last_line);
	TRUE(!modules.list_lock.held);
	list_add_tail(&objects[0].entry, &modules.list);
	objects[0].name = "nvidia_peermem";
	check_other("nvidia_peermem");
	objects[0].name = "nv_peer_mem";
	check_other("nv_peer_mem");
}

TEST(no_other_module_serves)
{
	alone_as("nv_peer_mem");
	alone_as("nvidia_peermem");
}
