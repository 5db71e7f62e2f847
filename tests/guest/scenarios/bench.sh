# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what registrations cost, beside nvidia-peermem
. /lab/bench/lib.sh
prepare_bench
for module in $MODULES; do
	for mode in persistent revocable; do
		load_measured "$module" "$mode"
		for layout in $LAYOUTS; do
			echo "$layout" >"$NVIDIA/layout"
			for size in $SIZES; do
				measure_costs "$size"
				measure_freed "$size"
			done
		done
		set_probes
		for layout in $LAYOUTS; do
			echo "$layout" >"$NVIDIA/layout"
			for size in $SIZES; do
				measure_held "$size"
			done
		done
		clear_probes
		rmmod "$module"
	done
	[ "$MACHINE" != plain ] || measure_module "$module"
done
