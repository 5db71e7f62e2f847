# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: without the module the same registration fails with EFAULT
# All: two lines of the demonstration
load_gpu
load_rdma
check "registration fails" gpuverbs register --offset 0 --length 64K --expect EFAULT
load_module
check "with the module it works" gpuverbs register --offset 0 --length 64K --expect ok
unload_module
check "and without it again not" gpuverbs register --offset 0 --length 64K --expect EFAULT
