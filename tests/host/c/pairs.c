// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tests /proc/driver/nv_peer_mem/pairs. */
#include "linux.h"
#include "nvpm.h"
#include "test.h"

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

#define HEAD "# gpu device map_type\n"
#define GPU "GPU-01020304-0506-0708-090a-0b0c0d0e0ff0 "

TEST(a_line_for_each)
{
	SAME(0, nvpm_lists_create());
	SAME_TEXT(HEAD, proc_content("pairs", NULL));
	pairs = 2;
	SAME_TEXT(HEAD GPU "0001:3b:14.3 ours\n" GPU "0001:3b:14.3 driver\n",
		  proc_content("pairs", NULL));
}

TEST(more_than_a_page)
{
	int line = sizeof(GPU "0001:3b:14.3 driver\n") - 1;

	SAME(0, nvpm_lists_create());
	/* The list of a machine with 8 GPUs and 16 devices does not fit in a page. */
	pairs = 8 * 16;
	TRUE(pairs * line > PAGE_SIZE);
	SAME(strlen(HEAD) + pairs * line - strlen("driver") + strlen("ours"),
	     strlen(proc_content("pairs", NULL)));
}

TEST(nobody_but_root)
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
