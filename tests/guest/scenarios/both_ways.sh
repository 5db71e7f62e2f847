# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: which way programs take on a node that has both, and the settings with which they register pointers
. /lab/cuda.sh
. /lab/dmabuf.sh
. /lab/wheels.sh
load_gpu
load_rdma
load_module persistent_api_support=0
ip link set lo up

# row PROGRAM: prints the first way by which a program registers GPU memory, and the program's
# setting to skip dma-buf. nvpm has both from this table.
row() {
	awk -v name="$1" '
		/^[^ #]/ { inside = $0 == name }
		inside && !way && /^  (dma-buf|pointer)$/ { way = $1 }
		inside && $1 == "skip" { skip = $2 }
		END { print way, skip }' /usr/local/share/programs.table
}

# takes TEXT WAY COMMAND...: runs COMMAND, which registers one buffer and prints the way of the
# registration. Checks that this way is WAY.
takes() {
	local text=$1 expected=$2
	shift 2
	check "$text: ends well" sh -c '"$@" </dev/null >/tmp/held 2>&1' sh "$@"
	equal "$text: $*" "$expected" "$(sed -n 's/^way=//p' /tmp/held)"
}

nixl=(env "UCX_TLS=rc,cuda" UCX_MEMTYPE_CACHE=n)
registers=(timeout -s KILL 100 python3 /lab/cuda/wheels.py registered)

for name in "UCX" "NIXL, by UCX"; do
	read -r way setting < <(row "$name")
	takes "$name" "$way" "${nixl[@]}" "${registers[@]}" nixl
	takes "$name, told to skip dma-buf" pointer "${nixl[@]}" "$setting" "${registers[@]}" nixl
done
read -r way setting < <(row Mooncake)
takes Mooncake "$way" "${registers[@]}" mooncake

# perftest registers one buffer on each side, and deregisters it at its end.
pointers() { peer nv_mem num_alloc_mrs; }
before=$(pointers)
check "perftest" pair ib_write_bw
equal "perftest: pointers" $((before + 2)) "$(pointers)"
check "perftest with --use_cuda_dmabuf" pair ib_write_bw --use_cuda_dmabuf
equal "perftest with --use_cuda_dmabuf: pointers" $((before + 2)) "$(pointers)"
