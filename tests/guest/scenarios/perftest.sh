# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: stock perftest programs on GPU memory at both ends
# Test: plain
load_all
for program in ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_send_lat ib_atomic_bw; do
	case $program in
	ib_atomic_bw) options=(-n 50) ;;
	*_bw) options=(-n 50 -s 65536) ;;
	*) options=(-n 50 -s 4096) ;;
	esac
	before=$(peer nv_mem num_alloc_mrs)
	check "$program" perftest "$program" "${options[@]}"
	equal "$program registered GPU memory at both ends" $((before + 2)) "$(peer nv_mem num_alloc_mrs)"
done
