/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The C library's own headers look here for the one of the system. */
#include_next <linux/types.h>
#include "host.h"
