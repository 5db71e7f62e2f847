/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "sched.h"

#define current_uid() (current->uid)
#define __kuid_val(uid) (uid)
