# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the driver takes memory back at every moment of a registration
# Machines: stock iommu checker
load_gpu
load_rdma
load_module persistent_api_support=0
for moment in in_get_gap before_get_returns after_get; do
	echo "$moment" >"$NVIDIA/strike"
	# Whoever comes first: an error that says so, or a registration that is revoked.
	check "struck $moment" eval 'gpuverbs register --offset 0 --length 1M --expect EFAULT || gpuverbs register --offset 0 --length 1M --expect ok'
	wait_for "the strike to end" sh -c "grep -q '^live_strikes 0' $NVIDIA/counters"
	check "and then it works" gpuverbs register --offset 0 --length 1M --expect ok
done
equal "strikes" 3 "$(nvidia_count strikes)"
