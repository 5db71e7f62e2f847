# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Machines: stock iommu
# Apart: bench
# Shows: what registrations cost, beside nvidia-peermem
. /lab/bench/lib.sh
prepare_bench
for module in $MODULES; do
	for mode in persistent revocable; do
		load_measured "$module" "$mode"
		for layout in contiguous holes2m holes64k; do
			echo "$layout" >"$NVIDIA/layout"
			for size in $SIZES; do
				figure_costs "$size"
				figure_held "$size"
				[ "$mode" = persistent ] || figure_revoked "$size"
			done
		done
		rmmod "$module"
	done
	[ "$MACHINE" != stock ] || figure_module "$module"
done
