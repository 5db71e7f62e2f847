// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the files in /sys/module/nv_peer_mem/statistics. */
#include <stdio.h>

#include "linux.h"
#include "nvpm.h"
#include "test.h"

static const char *const names[NVPM_CLIENTS] = { NULL, "nv_mem", "nv_mem_nc" };

static struct attribute **attributes(void)
{
	const struct kobj_type *type = sysfs_directory->type;

#ifdef NVPM_HAS_DEFAULT_GROUPS
	TRUE(!type->default_groups[1]);
	return type->default_groups[0]->attrs;
#else
	return type->default_attrs;
#endif
}

static struct attribute *find(const char *name)
{
	struct attribute **at = attributes();

	while (*at && strcmp((*at)->name, name))
		at++;
	TRUE(*at);
	return *at;
}

/* Returns the content of a file. Checks that the content fits in a page. */
static const char *content(const char *name)
{
	char *page = malloc(PAGE_SIZE);
	ssize_t len;

	memset(page, 0xee, PAGE_SIZE);
	page[0] = 0;
	len = sysfs_directory->type->sysfs_ops->show(sysfs_directory, find(name), page);
	SAME(strlen(page), len);
	return page;
}

TEST(each_counter_in_its_file)
{
	static const char *const files[NVPM_COUNTERS] = {
		[NVPM_COUNT_REACHABLE_REGIONS] = "reachable_regions",
		[NVPM_COUNT_BYTES] = "bytes",
		[NVPM_COUNT_REGISTRATIONS] = "registrations",
		[NVPM_COUNT_REVOCATIONS] = "revocations",
		[NVPM_COUNT_FAILED_NO_MEMORY] = "failed_no_memory",
		[NVPM_COUNT_FAILED_NOT_SUPPORTED] = "failed_not_supported",
		[NVPM_COUNT_FAILED_FREED] = "failed_freed",
		[NVPM_COUNT_FAILED_DRIVER] = "failed_driver",
		[NVPM_COUNT_FAILED_ORPHANS] = "failed_orphans",
		[NVPM_COUNT_ORPHANS] = "orphans",
	};
	char expected[32];
	int i;

	SAME(0, nvpm_statistics_create(names));
	for (i = 0; i < NVPM_COUNTERS; i++)
		nvpm_counters[i] = 0x1000000000 + i;
	for (i = 0; i < NVPM_COUNTERS; i++) {
		snprintf(expected, sizeof(expected), "%llu\n", 0x1000000000ull + i);
		SAME_TEXT(expected, content(files[i]));
		SAME(0444, find(files[i])->mode);
	}
}

TEST(clients)
{
	static const char *const three[NVPM_CLIENTS] = { "a", "b", "c" };

	SAME(0, nvpm_statistics_create(names));
	SAME_TEXT("nv_mem revocable\nnv_mem_nc persistent\n", content("clients"));
	SAME_TEXT("nv_mem_nc", nvpm_client_name(NVPM_CATCH_ALL));
	SAME(0444, find("clients")->mode);
	nvpm_statistics_remove();
	SAME(0, nvpm_statistics_create(three));
	SAME_TEXT("a persistent\nb revocable\nc persistent\n", content("clients"));
}

TEST(how_it_was_compiled)
{
	char expected[128];

	SAME(0, nvpm_statistics_create(names));
	snprintf(expected, sizeof(expected), "%s\n", nvpm_core_api);
	SAME_TEXT(expected, content("core_api"));
	SAME_TEXT("prebuilt\n", content("rust"));
}

TEST(comes_and_goes)
{
	SAME(0, nvpm_statistics_create(names));
	SAME_TEXT("statistics", sysfs_directory->name);
	TRUE(sysfs_directory->parent == &this_module.mkobj.kobj);
	nvpm_statistics_remove();
	TRUE(!sysfs_directory);
	/* The module's code must stay until the last user of the directory has released it. */
	SAME(0, completed);
}

TEST(nothing_stays_of_what_fails)
{
	faults.kobject_add = true;
	SAME(-ENOMEM, nvpm_statistics_create(names));
	TRUE(!sysfs_directory);
	SAME(0, completed);
	faults.kobject_add = false;
	/* The directory can be created again, because its last reference was put. */
	SAME(0, nvpm_statistics_create(names));
	nvpm_statistics_remove();
}
