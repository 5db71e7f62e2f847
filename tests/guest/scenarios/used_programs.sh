# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm used says exactly which GPU memory real programs have registered, and by which way
. /lab/cuda.sh
. /lab/dmabuf.sh
. /lab/holders.sh
. /lab/wheels.sh
load_gpu
load_rdma
load_module
use_seed
ip link set lo up

# rows: prints for each process the ways and bytes of its GPU memory, also if the way is unknown.
rows() {
	nvpm used --json >/tmp/used.json 2>/tmp/errors || true
	python3 -c '
import json
for row in json.load(open("/tmp/used.json"))["processes"]:
    gpu = [one for one in row["memory"] if not one["way"].startswith("host")]
    print(row["command"], *("{way}={bytes}".format(**one) for one in gpu))' | sort
}

# both COMMAND WAY BYTES: prints what rows must print of two processes.
both() { printf '%s %s=%s\n' "$1" "$2" "$3" "$1" "$2" "$3"; }

# says_soon PATTERN: succeeds if nvpm used soon says this in its first line. Each look takes seconds.
says_soon() {
	for _ in 1 2 3 4 5 6; do
		nvpm used >/tmp/said 2>&1 || true
		! head -n 1 /tmp/said | grep -q "$1" || return 0
	done
	cat /tmp/said
	return 1
}

# perftest TEXT ANSWER EXPECTED OPTION...: lets perftest write between two processes. Checks the first
# line of nvpm used, and the rows.
perftest() {
	local options=(-d "$HCA" -F -s 65536 -n 100000000 "${@:4}")
	ib_write_bw-cuda "${options[@]}" >/tmp/server 2>&1 &
	wait_for "the server" sh -c "ss -ltn | grep -q ':18515 '" || cat /tmp/server
	ib_write_bw-cuda "${options[@]}" "$ADDRESS" >/tmp/client 2>&1 &
	check "$1: $2" says_soon "$2" || cat /tmp/server /tmp/client
	equal "$1" "$3" "$(rows)"
	pkill -KILL ib_write_bw || true
	wait_for "the ends of both" eval '! pgrep ib_write_bw'
	wait_for "the end of their memory" driver_at_rest
}

# The kernel cuts the names of programs to 15 characters.
bw=ib_write_bw-cud
used='in use by 2 of 2 processes'
perftest "perftest, pointers" "$used" "$(both $bw nv_peer_mem 131072)" --use_cuda=0
perftest "perftest, dma-bufs" "$used" "$(both $bw dma-buf 131072)" --use_cuda=0 --use_cuda_dmabuf
perftest "perftest, host memory" "not in use" "$bw"$'\n'"$bw"

# holding TEXT EXPECTED PROGRAM COMMAND...: lets PROGRAM of wheels.py move data between two processes,
# and checks the rows while both have their buffers registered.
holding() {
	hold "${@:4}" /lab/cuda/wheels.py moved "$3" "$SEED" || fail "$1 does not come so far"
	equal "$1" "$2" "$(rows)"
	go_on
	check "$1: ends well" ended_well
}

# Each process registers two buffers of 2 MiB. NIXL's UCX registers each of them twice with an mlx5
# device, once with relaxed ordering.
holding "ibverbs" "$(both python3 nv_peer_mem 4194304)" ibverbs python3
holding "peercache, pointers" "$(both python3.11 nv_peer_mem 4194304)" peercache python3.11
DMABUF=1 holding "peercache, dma-bufs" "$(both python3.11 dma-buf 4194304)" peercache python3.11
export UCX_TLS=rc,cuda UCX_MEMTYPE_CACHE=n
holding "NIXL, dma-bufs" "$(both python3 dma-buf 8388608)" nixl python3
UCX_CUDA_COPY_DMABUF=n holding "NIXL, pointers" "$(both python3 nv_peer_mem 8388608)" nixl python3
holding "Mooncake" "$(both python3 nv_peer_mem 4194304)" mooncake python3

unload_module
modprobe nvidia-peermem
perftest "perftest, nvidia-peermem" "$used" "$(both $bw nvidia_peermem 131072)" --use_cuda=0
UCX_CUDA_COPY_DMABUF=n holding "NIXL, nvidia-peermem" "$(both python3 nvidia_peermem 8388608)" nixl python3
rmmod nvidia-peermem
