# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Measurements beside nvidia-peermem, in guests whose time counts instructions.

bench_main() {
	local out=${LAB_BENCH:-$LAB_CACHE/bench}
	mkdir -p "$out"
	: >"$out/figures"
	bench_guest bench@stock 1
	bench_guest bench@iommu 1
	bench_guest bench_threads@stock 4
}

# bench_guest NAME@MACHINE CPUS: one guest's figures, added to $out/figures.
bench_guest() {
	local scenario_label=$1 rc=0 started=$SECONDS seed=1
	LAB_CLOCK=instructions LAB_CPUS=$2
	guest_layers "${1#*@}"
	run_guest "${1%@*}" "lab.sizes=${LAB_SIZES:-64K,1M,16M,256M,4G,64G}" || rc=$?
	sed -n 's/^figure //p' "$run/said" >>"$out/figures"
	show_end "$1" "$rc" bench
}
