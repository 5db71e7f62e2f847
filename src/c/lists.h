/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each function creates one file in the directory of lists.c. Returns false if there is no memory.
 */
#ifndef NVPM_LISTS_H
#define NVPM_LISTS_H

#include <linux/proc_fs.h>
#include <linux/types.h>

bool nvpm_regions_create(struct proc_dir_entry *directory);
bool nvpm_pairs_create(struct proc_dir_entry *directory);

#endif
