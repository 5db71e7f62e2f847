/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What bindgen reads. lab_gpu.h is the simulated GPU driver's own header; the
 * build script puts its directory on the include path.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "lab_gpu.h"

/* What bindgen cannot evaluate, or makes an enum of, as constants. */
static const unsigned int gpuverbs_access_optional = IBV_ACCESS_OPTIONAL_RANGE;
static const int gpuverbs_scm_rights = SCM_RIGHTS;
static const int gpuverbs_msg_dontwait = MSG_DONTWAIT;
static const int gpuverbs_msg_cloexec = MSG_CMSG_CLOEXEC;
