/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Headers of the C library include this file by its name. They need the system's header of the same
 * name, so this file includes both headers.
 */
#include_next <linux/types.h>
#include "host.h"
