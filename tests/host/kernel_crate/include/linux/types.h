/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The C library's own headers include this name, and need the system's header. */
#include_next <linux/types.h>
#include "host.h"
