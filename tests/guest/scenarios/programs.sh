# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: programs of others on GPU memory: perftest with CUDA, UCX, pyverbs, rping, pingpongs
. /lab/cuda.sh
load_gpu
load_rdma
modprobe rdma_ucm

# The index of the address of IPv4, which programs of verbs ask their user for.
gid=$(grep -l 'ffff:c0a8:0701' /sys/class/infiniband/rxe0/ports/1/gids/*)
gid=${gid##*/}

# RC alone has to carry the data. Endpoints of the same machine find each other
# through shared memory. Debian's UCX knows no CUDA and so not how large an
# allocation is, of which by default it registers all.
export UCX_TLS=rc_verbs,posix:aux UCX_NET_DEVICES=rxe0:1 UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=rocm UCX_VFS_ENABLE=n

registrations() { peer nv_mem num_alloc_mrs; }

# both SERVER CLIENT: two commands, each a word for `eval`, the second when the
# first listens. Both must succeed.
both() {
	local pid rc=0
	eval "$1" &
	pid=$!
	wait_for "the server" sh -c "ss -ltn | grep -q ':18515 '" || return 1
	eval "$2" || rc=$?
	wait "$pid" && [ "$rc" = 0 ]
}

# moved WORD...: a program whose buffers are moved to the GPU.
moved() { LD_PRELOAD=/usr/local/lib/lab-gpu-buffers.so "$@"; }

# ---- without the module: each says what its user would see -------------------
cuda_contents 1 2
pair() {
	local rc=0
	both "perftest_side server $1 -n 20" "perftest_side client $1 -n 20 $ADDRESS" || rc=$?
	cat /tmp/server /tmp/client
	return "$rc"
}
alone() {
	local rc=0
	perftest_side client "$@" || rc=$?
	cat /tmp/client
	return "$rc"
}
without "ib_write_bw" "Couldn't allocate MR" pair ib_write_bw
without "ibv_rc_pingpong" "Couldn't register MR" moved ibv_rc_pingpong -d rxe0 -g "$gid"
without "UCX" "ucx_cuda: ucp_put_nbx: Request canceled" ucx_cuda

load_module

# ---- perftest ------------------------------------------------------------------
# perftest_cuda PROGRAM SERVER CLIENT: what the halves of both must hold at the
# end, as two words each: s0 is the server's first half at the beginning.
perftest_cuda() {
	local before side
	before=$(registrations)
	check "$1 --use_cuda" pair "$1"
	equal "$1: registrations" $((before + 2)) "$(registrations)"
	for side in "server $2" "client $3"; do
		read -r who first second <<<"$side"
		for word in "$first" "$second"; do
			case $word in s*) half /tmp/server.fill "${word#s}" ;; *) half /tmp/client.fill "${word#c}" ;; esac
		done >/tmp/expected
		check "$1: the bytes of the $who" cmp "/tmp/$who.dump" /tmp/expected
	done
}
perftest_cuda ib_write_bw "s0 c0" "c0 c1"
perftest_cuda ib_read_bw "s0 s1" "s1 c1"
perftest_cuda ib_send_bw "s0 c0" "c0 c1"
perftest_cuda ib_read_lat "s0 s1" "s1 c1"
perftest_cuda ib_send_lat "s0 c0" "c0 s0"
# It polls its buffer with the CPU, which on a GPU's it must not.
without "ib_write_lat" "CUDA latency tests with read/send verbs only" alone ib_write_lat "$ADDRESS"

# ---- buffers moved to the GPU ----------------------------------------------------
# They fill and compare their buffers themselves.
pingpong() {
	local name=$1 before
	shift
	before=$(registrations)
	check "$name" both "moved $name -d rxe0 -g $gid -n 100 $* >/tmp/server 2>&1" \
		"moved $name -d rxe0 -g $gid -n 100 $* $ADDRESS >/tmp/client 2>&1" || cat /tmp/server /tmp/client
	check "$name: no invalid data" eval '! grep -i invalid /tmp/server /tmp/client'
	equal "$name: registrations" $((before + 2)) "$(registrations)"
}
pingpong ibv_rc_pingpong -c -s 65537
pingpong ibv_uc_pingpong -c -s 65537
pingpong ibv_ud_pingpong -c -s 1024
pingpong ibv_srq_pingpong -c -s 65537

# The software HCA has no XRC, with any memory.
without "ibv_xsrq_pingpong" "XRC" ibv_xsrq_pingpong -d rxe0 -g "$gid"

before=$(registrations)
export GPU_MALLOC=5003
moved rping -s -a "$ADDRESS" -V -C 10 -S "$GPU_MALLOC" &
server=$!
wait_for "the server of rping" sh -c 'rdma resource show cm_id | grep -q "state LISTEN"'
check "rping" moved rping -c -a "$ADDRESS" -V -C 10 -S "$GPU_MALLOC"
check "rping: the server" wait "$server"
equal "rping: registrations" $((before + 3)) "$(registrations)"
unset GPU_MALLOC

# ---- UCX -------------------------------------------------------------------------
before=$(registrations)
check "UCX: put and get" ucx_cuda
check "UCX: registrations" test "$(registrations)" -ge $((before + 2))

# ---- pyverbs -----------------------------------------------------------------------
cuda verbs

# The host sees the same bytes in the file behind the GPU's BAR.
gpuverbs pattern --seed 3 --length 3000001 >/tmp/pattern
check "RDMA between CUDA buffers" hold python3 -B /lab/cuda/outside.py /tmp/pattern
for end in source target; do
	offset=$(sed -n "s/^${end}_offset=//p" /tmp/held)
	equal "RDMA between CUDA buffers: the $end, seen from outside" yes "$(ask pattern "$offset" 3000001 3)"
done
check "RDMA between CUDA buffers: ended well" ended_well
