# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a scenario does fail when a contract is broken or something is left
# Test: plain
load_gpu
load_rdma
load_module persistent_api_support=0
# A client's registrations are in use: what check_clean looks at must show it.
hold gpuverbs transfer --from 0 --to 8M --length 64K --seed 1 --hold
check "the driver's live pins show" test -n "$(live_gauges "$NVIDIA")"
check "the core's live regions show" test -n "$(live_gauges "$CORE")"
kill "$held"
ended_well || true
# An old server's hang, which the double reports instead of hanging.
echo 'b2_stop_inverted 1' >"$CORE/switch"
echo 'driver 1' >"$CORE/fail"
check "the registration fails" gpuverbs register --offset 0 --length 64K --expect ENOMEM
check "and a violation shows" grep -q b2_deadlock "$CORE/violations"
echo 'b2_stop_inverted 0' >"$CORE/switch"
echo clear >"$CORE/violations"
