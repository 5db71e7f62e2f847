/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#define NV_GENERATION 575
#include "../nv-p2p.h"
