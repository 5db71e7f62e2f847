# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Measurements beside nvidia-peermem, in guests whose time counts instructions:
# what they say is kept in figures, and tests/bench makes the report of it.

BENCH_GUESTS=(bench@stock bench@iommu bench_threads@stock)

# What is registered (tests/guest/bench/lib.sh).
LAB_SIZES=${LAB_SIZES:-64K,1M,16M,256M,4G,64G}

# Where results are kept.
LAB_BENCH=${LAB_BENCH:-$LAB_CACHE/bench}

# bench_main [GUEST...]: measures, all guests or these, and reports.
# bench_main --docs: writes the last results into docs/performance.md.
bench_main() {
	local measured=0 guest
	mkdir -p "$LAB_BENCH"
	bench_layer
	if [ "${1-}" = --docs ]; then
		bench_docs
		return
	fi
	[ $# -gt 0 ] || set -- "${BENCH_GUESTS[@]}"
	for guest; do
		[[ " ${BENCH_GUESTS[*]} " == *" $guest "* ]] || die "there is no '$guest' to measure, only: ${BENCH_GUESTS[*]}."
	done
	: >"$LAB_BENCH/figures"
	each bench_guest "$@" || measured=1
	bench_report "$@" || measured=1
	say bench "results.json and plots (*.svg) are in $LAB_BENCH"
	return "$measured"
}

# bench_program BIND... -- ARGUMENT...: the program of tests/bench.
bench_program() {
	local binds=() scratch rc=0
	while [ "$1" != -- ]; do
		binds+=("$1")
		shift
	done
	shift
	new_dir tmp bench
	scratch=$reply
	in_layers "$bench_stack" "$scratch" bench-report "$@" || rc=$?
	rm -rf "$scratch"
	return "$rc"
}

sizes_in_bytes() {
	tr , '\n' <<<"$LAB_SIZES" | numfmt --from=iec | paste -sd,
}

# bench_guest NAME@MACHINE: one guest's figures, added to $LAB_BENCH/figures.
bench_guest() {
	local scenario_label=$1 rc=0 started=$SECONDS seed=1 watcher
	case $1 in
	bench_threads@*) LAB_CPUS=4 ;;
	*) LAB_CPUS=1 ;;
	esac
	LAB_CLOCK=instructions
	guest_layers "${1#*@}"
	new_run "${1%@*}"
	bench_program "$run/said:/said:ro" -- watch "$1" "$(sizes_in_bytes)" /said &
	watcher=$!
	boot_guest "lab.scenario=${1%@*} lab.sizes=$LAB_SIZES" || rc=$?
	# It has seen the guest's end, or there was none to see.
	grep -q '^end ' "$run/said" || kill "$watcher"
	wait "$watcher" || true
	sed -n 's/^figure //p' "$run/said" >>"$LAB_BENCH/figures"
	show_end "$1" "$rc" bench
}

version_of() {
	local binds=() scratch
	new_dir tmp version
	scratch=$reply
	in_layers "$stack" "$scratch" modinfo -k "$kver" -F version "$1"
	rm -rf "$scratch"
}

# bench_report GUEST...: of what these have said.
bench_report() {
	local guests facts=("date=$(date -u +%F)" "kernel=$kver" "sizes=$LAB_SIZES")
	facts+=("qemu=$(qemu-system-x86_64 --version | sed -n 's/.*version \([0-9.]*\).*/\1/p')")
	facts+=("nv_peer_mem=$(version_of nv_peer_mem)" "nvidia-peermem=$(version_of nvidia-peermem)")
	guests=$(IFS=, && printf '%s' "$*")
	# Two runs with the same of these should agree.
	facts+=("inputs=$(printf '%s\n' "$stack" "$guests $LAB_SIZES" "$(hash_of "$top/tests/guest")" | sha256sum | cut -c 1-12)")
	bench_program "$LAB_BENCH:/bench" -- report /bench "$guests" "$(sizes_in_bytes)" "${facts[@]}"
}

bench_docs() {
	bench_program "$LAB_BENCH:/bench:ro" "$top/docs:/docs" -- docs /bench /docs/performance.md performance ||
		die "docs/performance.md is as it was: tests/run bench makes complete results."
	say bench "docs/performance.md and its plots are written; look at what git says has changed"
}
