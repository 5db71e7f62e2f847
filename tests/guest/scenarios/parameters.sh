# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: parameters are readable, wrong values refused, a clash of names explained
# Machines: stock checker
load_gpu
load_rdma
load_module
equal "persistent_api_support" 1 "$(cat /sys/module/nv_peer_mem/parameters/persistent_api_support)"
equal "peerdirect_support" 0 "$(cat /sys/module/nv_peer_mem/parameters/peerdirect_support)"
unload_module
for parameter in persistent_api_support peerdirect_support; do
	check "$parameter=7 is refused" eval "! load_module $parameter=7 2>/dev/null"
	expect_log "and the log says which values there are" "nv_peer_mem: $parameter=7 .*use 0 or 1"
done
