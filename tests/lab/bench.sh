# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Measurements beside nvidia-peermem, and of each ground beside the others, in guests
# whose time counts instructions: what they report is kept in the file metrics, and
# tests/bench makes the report of it.
#
# Exit status of bench: 0 if everything was measured and all bounds of it are met; 2
# if bounds are missed, all for known reasons (tests/bench/src/reasons.rs); 1 if
# anything else is wrong: a guest failed, a measurement is missing, a bound is
# missed for no known reason.

BENCH_GUESTS=(bench@stock bench@iommu bench_threads@stock)
BENCH_GUESTS+=(bench_ground_{kernel,free,ready}@stock)

# What is registered (tests/guest/bench/lib.sh).
LAB_SIZES=${LAB_SIZES:-64K,1M,16M,256M,4G,64G}

# Where results are kept.
LAB_BENCH=${LAB_BENCH:-$LAB_CACHE/bench}

# Nothing is left to chance, or two runs could not agree: the same seed in each.
BENCH_SEED=1

# bench_main [GUEST...]: measures, all guests or these, and reports.
# bench_main --docs: writes the last results into docs/performance.
bench_main() {
	local measured=0 reported=0 guest
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
	: >"$LAB_BENCH/metrics"
	each bench_guest "$@" || measured=1
	bench_report "$@" || reported=$?
	say bench "results.json and plots (*.svg) are in $LAB_BENCH"
	[ "$measured" = 0 ] || return "$measured"
	return "$reported"
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

# bench_guest NAME@MACHINE: what one guest measures, added to $LAB_BENCH/metrics.
bench_guest() {
	local scenario_label=$1 rc=0 started=$SECONDS seed=$BENCH_SEED watcher
	case $1 in
	bench_threads@*) LAB_CPUS=4 ;;
	*) LAB_CPUS=1 ;;
	esac
	LAB_CLOCK=instructions
	layers_of "$1"
	new_run "${1%@*}"
	bench_program "$run/said:/said:ro" -- watch "$1" "$(sizes_in_bytes)" /said &
	watcher=$!
	boot_guest "lab.scenario=${1%@*} lab.seed=$seed lab.sizes=$LAB_SIZES" || rc=$?
	# It has seen the guest's end, or there was none to see.
	grep -q '^end ' "$run/said" || kill "$watcher"
	wait "$watcher" || true
	sed -n 's/^metrics //p' "$run/said" >>"$LAB_BENCH/metrics"
	show_end "$1" "$rc" "bench $1"
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
	bench_program "$LAB_BENCH:/bench:ro" "$top/docs:/docs" -- docs /bench /docs/performance ||
		die "docs/performance is as it was: tests/run bench makes complete results."
	say bench "docs/performance/results.md and its plots are written; docs/performance.md must agree with them"
}
