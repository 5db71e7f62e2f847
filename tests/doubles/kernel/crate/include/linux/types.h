/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Headers of the C library include <linux/types.h>, and then get this file. They need the system's
 * header of that name, so this file includes the system's header and host.h.
 */
#include_next <linux/types.h>
#include "host.h"
