# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm used on a software device, which says neither which memory is paged nor counts its bytes
. /lab/cuda.sh
. /lab/holders.sh
ip link set lo up
load_gpu
load_rdma
load_module

held pointer pointer 5 traffic
pointer=$number
held host host 4
host=$number
held plain host 3 plain
plain=$number
# rxe pages memory on demand since 6.15, and refuses this before.
paged=()
if [ "$(printf '6.15\n%s\n' "$(uname -r)" | sort -V | head -n 1)" = 6.15 ]; then
	held paged paged 6
	paged=("$number")
fi
held thread pointer 2 thread
thread=$number
held ended pointer 3 ended
ended=$number

say "root"
says 'GPUDirect RDMA is (in use|set up) by'
look 0
of "a pointer" "$pointer" "GPU memory" nv_peer_mem 10
of "host memory of a process with a GPU" "$host" "host memory only" host 8
of "host memory of a process without a GPU" "$plain" "no GPU" host 6
for process in "${paged[@]}"; do
	check "paged memory is not called GPU memory, although nothing marks it" no_gpu_memory "$process"
done
of "a thread" "$thread" "GPU memory" nv_peer_mem 4
of "a thread that has ended" "$ended" "GPU memory" nv_peer_mem 6

say "another user"
as_nobody nvpm used --json >/tmp/used.json 2>/tmp/errors || true
for process in "$host" "$plain" "${paged[@]}"; do
	check "host memory of $process is not called GPU memory" no_gpu_memory "$process"
done
end_all
