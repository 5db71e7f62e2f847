# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: ucx_info sees GPUDirect with the module and not without
# All: two lines of the demonstration
load_gpu
load_rdma
sees_gpu() { grep -qE 'memory types:.*cuda' <<<"$(ucx_info -d 2>/dev/null)"; }
check "not without" eval '! sees_gpu'
load_module
check "with" sees_gpu
unload_module
check "not after" eval '! sees_gpu'
