# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what registrations cost that several threads make at once
. /lab/bench/lib.sh
prepare_bench
echo contiguous >"$NVIDIA/layout"
for module in $MODULES; do
	for mode in persistent revocable; do
		load_measured "$module" "$mode"
		for threads in 1 2 4; do
			measure_threads "$threads"
		done
		rmmod "$module"
	done
done
