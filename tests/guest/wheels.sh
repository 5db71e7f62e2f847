# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with the programs of wheels.py.

# checks NAME: counts the checks that the held program has made.
checks() {
	local word rest
	while read -r word rest; do
		case $word in
		ok) ok "$1: $rest" ;;
		fail) fail "$1: $rest" ;;
		esac
	done </tmp/held
}

# moved PROGRAM COMMAND...: runs `moved` of wheels.py by COMMAND. The host looks for the bytes in the
# GPU's memory, in both directions.
moved() {
	local read=no written=no
	if hold "${@:2}" /lab/cuda/wheels.py moved "$1" "$SEED"; then
		read=$(ask pattern "$(said read_offset)" "$(said length)" "$SEED")
		written=$(ask pattern "$(said written_offset)" "$(said length)" "$((SEED + 1))")
		go_on
	fi
	check "$1: ends well" ended_well
	checks "$1"
	equal "$1: read and seen from outside" yes "$read"
	equal "$1: written and seen from outside" yes "$written"
}

# served PROGRAM COMMAND...: runs `moved`, and checks that a peer-memory client has served the two
# buffers of each process. NIXL's UCX registers each buffer twice with an mlx5 device, once with
# relaxed ordering.
served() {
	local before times=1
	[ "$1" != nixl ] || times=2
	before=$(peer nv_mem num_alloc_mrs)
	moved "$@"
	equal "$1: registrations of GPU memory" $((before + 4 * times)) "$(peer nv_mem num_alloc_mrs)"
}

# refused PROGRAM EXPECTED COMMAND...: lets the program register memory without the module, and checks
# that the program prints EXPECTED.
refused() {
	timeout -k 5 90 "${@:3}" /lab/cuda/wheels.py refused "$1" </dev/null >/tmp/out 2>&1 || true
	cat /tmp/out
	check "$1 without the module: $2" grep -qE "$2" /tmp/out
}

# detected TEXT UCX: checks what NIXL's UCX prints about peer memory, and that nvpm status says that
# NIXL takes a dma-buf, which this UCX prefers.
detected() {
	rm -f /tmp/ucx
	UCX_LOG_LEVEL=debug UCX_LOG_FILE=/tmp/ucx python3 /lab/cuda/wheels.py started nixl
	check "$1: UCX" grep -qE "$HCA: cuda GPUDirect RDMA is $2" /tmp/ucx
	nvpm status --json >/tmp/status || true
	equal "$1: nvpm" dma-buf "$(python3 -c '
import json
print(json.load(open("/tmp/status"))["programs"]["NIXL, by UCX"])')"
}
