# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the cost of registrations, compared with an ideal client and with nvidia-peermem
job=$(word job '')
[ "$job" ] || {
	fail "only tests/run bench can measure: it has time count instructions"
	exit 1
}
# The doubles check as little as possible, because their checks would count as costs of the core and
# of the driver.
load_gpu own_dma=0
load_rdma
echo 0 >"$NVIDIA/verify"
echo 0 >"$NVIDIA/quarantine_max"
# BAR1 gets room for every size, because this scenario does not test a full BAR1.
echo $((1 << 40)) >"$NVIDIA/bar1_bytes"
echo light 1 >"$CORE/switch"
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || [ -e /sys/kernel/tracing/trace ]
python3 -B /lab/bench.py "$job" | while read -r line; do
	report "# metrics: $line"
done
