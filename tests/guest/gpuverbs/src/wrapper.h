/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What bindgen reads. lab_gpu.h is the simulated GPU driver's own header; the
 * build script puts its directory on the include path.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "lab_gpu.h"

/* A macro that bindgen cannot evaluate, as a constant that it can. */
static const unsigned int gpuverbs_access_optional = IBV_ACCESS_OPTIONAL_RANGE;
