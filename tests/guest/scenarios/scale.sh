# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a registration costs the same among ten others and among a hundred thousand
# Clock: instructions, in which costs are counted
# Cards: 16
#
# docs/performance.md has the measurements and the results.

# The doubles check as little as possible, as in bench.sh. Each network card has an RDMA device.
load_gpu own_dma=0
modprobe -a e1000e ib_uverbs rdma_rxe
devices=0
for card in /sys/bus/pci/drivers/e1000e/*/net/*; do
	rdma link add "rxe$devices" type rxe netdev "${card##*/}"
	devices=$((devices + 1))
done
equal "RDMA devices" 17 "$devices"
echo 0 >"$NVIDIA/verify"
echo 0 >"$NVIDIA/quarantine_max"
echo $((1 << 40)) >"$NVIDIA/bar1_bytes"
echo light 1 >"$CORE/switch"
ulimit -n 200000

# figure NAME LINE: prints the figure NAME of the measurement in LINE.
figure() {
	awk -v name="$1" -v line="$2" '
		NR == line {
			for (at = 1; at < NF; at += 2)
				if ($at == name)
					print $(at + 1)
		}' /tmp/scale
}

# measure WORD...: stores measurements in /tmp/scale, and reports them.
measure() {
	python3 -B /lab/scale.py "$@" >/tmp/scale
	while read -r line; do say "$* $line"; done </tmp/scale
}

# flat TEXT NAME: checks that the figure NAME is at most a tenth larger in the last measurement than
# in the first one.
flat() {
	local first last
	first=$(figure "$2" 1)
	last=$(figure "$2" "$(wc -l </tmp/scale)")
	check "$1, $2: $first, and $last" test $((10 * last)) -le $((11 * first))
}

for support in 1 0; do
	if [ "$support" = 1 ]; then mode=persistent; else mode=revocable; fi
	load_module "persistent_api_support=$support"
	for number in 1 8; do
		measure beside "$mode" "$number" 10 1000 100000
		for name in register deregister free; do
			flat "$mode, $number devices" "$name"
		done
		equal "$mode, $number devices: all are listed" 100000 "$(figure lines 3)"
	done
	unload_module
done

load_module
measure pairs 8 16
for name in register deregister; do
	flat "pairs" "$name"
done
equal "each pair is listed" $((8 * 16)) "$(map_types | wc -l)"
measure cards persistent 8
unload_module
