/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What bindgen reads. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "lab_gpu.h"
