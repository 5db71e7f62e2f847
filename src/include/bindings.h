/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* bindgen reads these headers for abi.rs. */
#include <linux/scatterlist.h>
#include <nv-p2p.h>
#include "../c/nvpm.h"
#ifdef NVPM_KUNIT
#include "../kunit/helpers.h"
#endif
