# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a program of others on CUDA memory: perftest with CUDA
. /lab/cuda.sh
load_gpu
load_rdma

registrations() { peer nv_mem num_alloc_mrs; }

# pair PROGRAM: both sides of it, each with its buffer in CUDA memory. Both must succeed.
pair() {
	local program="$1-cuda" options=(-d rxe0 -F -s 65536 -n 20 --use_cuda=0) pid rc=0
	"$program" "${options[@]}" >/tmp/server 2>&1 &
	pid=$!
	wait_for "the server" sh -c "ss -ltn | grep -q ':18515 '" || return 1
	"$program" "${options[@]}" "$ADDRESS" >/tmp/client 2>&1 || rc=$?
	wait "$pid" || rc=$?
	cat /tmp/server /tmp/client
	return "$rc"
}

without "ib_write_bw" "Couldn't allocate MR" pair ib_write_bw
load_module
for program in ib_write_bw ib_read_lat ib_send_lat; do
	before=$(registrations)
	check "$program --use_cuda" pair "$program"
	equal "$program: registrations" $((before + 2)) "$(registrations)"
done
