/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define NV_GENERATION 570
#include "../nv-p2p.h"
