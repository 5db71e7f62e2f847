/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What bindgen reads; lab_gpu.h is the simulated GPU driver's own header. */
#include <infiniband/verbs.h>

#include "lab_gpu.h"
