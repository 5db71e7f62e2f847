// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiles if struct kobj_type has the member default_groups (Linux 5.2 and later). */
#include <linux/kobject.h>

const struct kobj_type question = {
	.default_groups = NULL,
};
