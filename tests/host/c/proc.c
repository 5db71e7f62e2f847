// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the lists in /proc/driver/nv_peer_mem. */
#include <stdio.h>

#include "linux.h"
#include "nvpm.h"
#include "test.h"

static struct {
	u64 number;
	struct nvpm_region region;
} regions[4];

/* In the module, Rust defines this function. */
u64 nvpm_region_from(u64 number, struct nvpm_region *region)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(regions); i++)
		if (regions[i].number >= number && regions[i].number) {
			*region = regions[i].region;
			return regions[i].number;
		}
	return 0;
}

#define REGIONS "# process started age address length client state device name\n"

static void create(void)
{
	static const char *const names[NVPM_CLIENTS] = { "nv_mem", "nv_mem_revocable", "nv_mem_fixed" };

	SAME(0, nvpm_statistics_create(names));
	SAME(0, nvpm_lists_create());
}

static struct nvpm_region one(const char *name)
{
	struct nvpm_region region = {
		.address = 0x7f0000001005, .len = 65526,
		.process = { .born = 12345678901234567, .tgid = 40, .uid = 1000 },
		.since = 995, .domain = 0x10002, .devfn = 0x3ba3,
		.client = NVPM_REVOCABLE, .state = NVPM_REGION_MAPPED,
	};

	memcpy(region.comm, name, strlen(name));
	return region;
}

TEST(no_region)
{
	create();
	SAME_TEXT(REGIONS, proc_content("regions", NULL));
}

TEST(a_mapped_region)
{
	create();
	regions[0].number = 3;
	regions[0].region = one("python3");
	SAME_TEXT(REGIONS "40 1234567890 5 0x7f0000001005 65526 nv_mem_revocable mapped 10002:3b:14.3 python3\n",
		  proc_content("regions", NULL));
	regions[0].region.domain = 0;
	regions[0].region.devfn = 0xff00;
	SAME_TEXT(REGIONS "40 1234567890 5 0x7f0000001005 65526 nv_mem_revocable mapped 0000:ff:00.0 python3\n",
		  proc_content("regions", NULL));
	regions[0].region.devfn = 0xffff;
	SAME_TEXT(REGIONS "40 1234567890 5 0x7f0000001005 65526 nv_mem_revocable mapped 0000:ff:1f.7 python3\n",
		  proc_content("regions", NULL));
	regions[0].region.domain = NVPM_NO_DEVICE;
	SAME_TEXT(REGIONS "40 1234567890 5 0x7f0000001005 65526 nv_mem_revocable mapped - python3\n",
		  proc_content("regions", NULL));
}

TEST(each_state)
{
	static const char *const names[] = {
		"pinning", "pinned", "mapped", "unmapped", "revoking", "revoked",
		"orphaned"
	};
	char expected[256];
	int state;

	create();
	for (state = NVPM_REGION_PINNING; state <= NVPM_REGION_ORPHANED; state++) {
		regions[0].number = 1;
		regions[0].region = one("a");
		regions[0].region.state = state;
		snprintf(expected, sizeof(expected),
			 REGIONS "40 1234567890 5 0x7f0000001005 65526 nv_mem_revocable %s 10002:3b:14.3 a\n",
			 names[state]);
		SAME_TEXT(expected, proc_content("regions", NULL));
	}
}

TEST(names_are_escaped)
{
	create();
	regions[0].number = 1;
	regions[0].region = one("a b\\\n\x7f\xff!~");
	TRUE(strstr(proc_content("regions", NULL), " a\\040b\\134\\012\\177\\377!~\n"));
}

static void another_comes_and_one_goes(void)
{
	regions[0].number = 0;
	regions[1].number = 0;
	regions[3] = regions[2];
	regions[3].number = 0x100000009;
	snprintf((char *)regions[3].region.comm, sizeof(regions[3].region.comm), "late");
}

TEST(each_region_once_whatever_comes_and_goes)
{
	const char *text;

	create();
	regions[0].number = 3;
	regions[0].region = one("first");
	regions[1].number = 4;
	regions[1].region = one("gone");
	regions[2].number = 0x100000005;
	regions[2].region = one("third");
	text = proc_content("regions", another_comes_and_one_goes);
	TRUE(strstr(text, " first\n"));
	TRUE(!strstr(text, " gone\n"));
	TRUE(strstr(strstr(text, " third\n") + 1, " late\n"));
	TRUE(!strstr(strstr(text, " third\n") + 1, " third\n"));
	TRUE(!strstr(strstr(text, REGIONS) + 1, REGIONS));
}

TEST(regions_for_root_only)
{
	struct file file = { 0 };

	create();
	SAME(0400, proc_find("regions")->mode);
	/*
	 * The mode of the file admits root of a container. The module must nevertheless refuse this
	 * user, because root of a container lacks the capability.
	 */
	faults.not_admin = true;
	SAME(-EPERM, proc_find("regions")->ops->PROC_OPEN(NULL, &file));
	faults.not_admin = false;
	faults.seq_open = true;
	SAME(-ENOMEM, proc_find("regions")->ops->PROC_OPEN(NULL, &file));
	SAME(0, open_files);
	TRUE(proc_find("regions")->ops->PROC_SEEK == seq_lseek);
}

static int pairs;

/* In the module, Rust defines this function. */
void nvpm_pairs_each(void *file)
{
	static const u8 uuid[16] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xf0 };
	struct pci_dev pci = { .dev = { .name = "0001:3b:14.3" } };
	int i;

	for (i = 0; i < pairs; i++)
		nvpm_pair_line(file, uuid, &pci.dev, i ? "driver" : "ours");
}

#define PAIRS "# gpu device map_type\n"
#define GPU "GPU-01020304-0506-0708-090a-0b0c0d0e0ff0 "

TEST(a_line_for_each_pair)
{
	SAME(0, nvpm_lists_create());
	SAME_TEXT(PAIRS, proc_content("pairs", NULL));
	pairs = 2;
	SAME_TEXT(PAIRS GPU "0001:3b:14.3 ours\n" GPU "0001:3b:14.3 driver\n",
		  proc_content("pairs", NULL));
}

TEST(more_pairs_than_a_page_has)
{
	int line = sizeof(GPU "0001:3b:14.3 driver\n") - 1;

	SAME(0, nvpm_lists_create());
	/* The list of a machine with 8 GPUs and 16 devices does not fit in a page. */
	pairs = 8 * 16;
	TRUE(pairs * line > PAGE_SIZE);
	SAME(strlen(PAIRS) + pairs * line - strlen("driver") + strlen("ours"),
	     strlen(proc_content("pairs", NULL)));
}

TEST(pairs_for_root_only)
{
	struct file file = { 0 };

	SAME(0, nvpm_lists_create());
	SAME(0400, proc_find("pairs")->mode);
	faults.not_admin = true;
	SAME(-EPERM, proc_find("pairs")->ops->PROC_OPEN(NULL, &file));
	faults.not_admin = false;
	faults.seq_open = true;
	SAME(-ENOMEM, proc_find("pairs")->ops->PROC_OPEN(NULL, &file));
	SAME(0, open_files);
	TRUE(proc_find("pairs")->ops->PROC_SEEK == seq_lseek);
}

TEST(comes_and_goes)
{
	SAME(0, nvpm_lists_create());
	SAME_TEXT("driver/nv_peer_mem", proc_directory->name);
	TRUE(!proc_directory->parent);
	TRUE(proc_find("regions"));
	TRUE(proc_find("pairs"));
	nvpm_lists_remove();
	TRUE(!proc_directory);
	TRUE(!proc_find("regions"));
	SAME(0, nvpm_lists_create());
	TRUE(proc_find("regions"));
}

TEST(nothing_stays_of_what_fails)
{
	faults.proc_mkdir = true;
	SAME(-ENOMEM, nvpm_lists_create());
	TRUE(!proc_directory);
	faults.proc_mkdir = false;
	faults.proc_create = "regions";
	SAME(-ENOMEM, nvpm_lists_create());
	TRUE(!proc_directory);
	faults.proc_create = "pairs";
	SAME(-ENOMEM, nvpm_lists_create());
	TRUE(!proc_directory);
	TRUE(!proc_find("regions"));
}
