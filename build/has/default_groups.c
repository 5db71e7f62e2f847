// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A kobj_type has groups of attributes (Linux 5.2), and not one list of them. */
#include <linux/kobject.h>

const struct kobj_type question = {
	.default_groups = NULL,
};
