/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each of these functions creates one file in the directory that lists.c has made. The function
 * returns false if there is no memory.
 */
#ifndef NVPM_LISTS_H
#define NVPM_LISTS_H

#include <linux/proc_fs.h>
#include <linux/types.h>

bool nvpm_regions_create(struct proc_dir_entry *directory);
bool nvpm_pairs_create(struct proc_dir_entry *directory);

#endif
