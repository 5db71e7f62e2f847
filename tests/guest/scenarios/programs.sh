# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: programs of others on CUDA memory: perftest with CUDA, UCX
. /lab/cuda.sh
load_gpu
load_rdma

# RC alone has to carry the data. Endpoints of the same machine find each other
# through shared memory. Debian's UCX knows no CUDA and so not how large an
# allocation is, of which by default it registers all.
export UCX_TLS=rc_verbs,posix:aux UCX_NET_DEVICES=rxe0:1 UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES=rocm UCX_VFS_ENABLE=n

registrations() { peer nv_mem num_alloc_mrs; }

# half FILE 0|1: the first or the second 64 KiB of a file.
half() { dd if="$1" bs=64K skip="$2" count=1 status=none; }

# side WHO PROGRAM WORD...: one side of a perftest program, with its buffer in CUDA
# memory: two halves of 64 KiB. What was in it at the end is in /tmp/WHO.dump.
side() {
	rm -f "/tmp/$1.dump"
	LD_PRELOAD=/usr/local/lib/lab-gpu-contents.so GPU_FILL="/tmp/$1.fill" GPU_DUMP="/tmp/$1.dump" \
		"$2-cuda" -d rxe0 -F -s 65536 -n 20 --use_cuda=0 "${@:3}" >"/tmp/$1" 2>&1
}

# pair PROGRAM: both sides. Both must succeed.
pair() {
	local pid rc=0
	side server "$1" &
	pid=$!
	wait_for "the server" sh -c "ss -ltn | grep -q ':18515 '" || return 1
	side client "$1" "$ADDRESS" || rc=$?
	wait "$pid" || rc=$?
	cat /tmp/server /tmp/client
	return "$rc"
}

gpuverbs pattern --seed 1 --length 131072 >/tmp/server.fill
gpuverbs pattern --seed 2 --length 131072 >/tmp/client.fill
without "ib_write_bw" "Couldn't allocate MR" pair ib_write_bw
without "UCX" "ucx_cuda: ucp_put_nbx: Request canceled" ucx_cuda
load_module

# What the halves of both hold at the end, as two words each: s0 is the server's
# first half at the beginning.
while read -r program server client; do
	before=$(registrations)
	check "$program --use_cuda" pair "$program"
	equal "$program: registrations" $((before + 2)) "$(registrations)"
	for who in server client; do
		words=${!who}
		for word in "${words%-*}" "${words#*-}"; do
			case $word in s*) half /tmp/server.fill "${word#s}" ;; *) half /tmp/client.fill "${word#c}" ;; esac
		done >/tmp/expected
		check "$program: the bytes of the $who" cmp "/tmp/$who.dump" /tmp/expected
	done
done <<-ENDS
	ib_write_bw s0-c0 c0-c1
	ib_read_lat s0-s1 s1-c1
	ib_send_lat s0-c0 c0-s0
ENDS

before=$(registrations)
check "UCX: put and get" ucx_cuda
check "UCX: registrations" test "$(registrations)" -ge $((before + 2))
