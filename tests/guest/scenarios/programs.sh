# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a program of others on CUDA memory: perftest with CUDA
. /lab/cuda.sh
load_gpu
load_rdma

registrations() { peer nv_mem num_alloc_mrs; }

without "ib_write_bw" "Couldn't allocate MR" pair ib_write_bw
load_module
for program in ib_write_bw ib_read_lat ib_send_lat; do
	before=$(registrations)
	check "$program --use_cuda" pair "$program"
	equal "$program: registrations" $((before + 2)) "$(registrations)"
done
