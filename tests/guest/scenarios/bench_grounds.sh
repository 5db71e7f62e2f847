# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Layers: grounds
# Apart: bench
# Shows: what registrations cost on each ground
. /lab/bench/lib.sh
prepare_bench
for ground in $GROUNDS; do
	for mode in persistent revocable; do
		load_ground "$ground" "$mode"
		for layout in $ENDS; do
			echo "$layout" >"$NVIDIA/layout"
			for size in $SIZES; do
				[ "$(bytes "$size")" -le $((4 << 30)) ] || continue
				measure_simulated "$size"
				[ "$mode" = persistent ] || measure_revoked "$size"
			done
		done
		rmmod nv_peer_mem
	done
done
