// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests the directory /proc/driver/nv_peer_mem. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

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
