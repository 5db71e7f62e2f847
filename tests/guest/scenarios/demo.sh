# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what `tests/run demo` shows, step by step
sees_gpu() { grep -qE 'memory types:.*cuda' <<<"$(ucx_info -d 2>/dev/null)"; }
sees_no_gpu() { ! sees_gpu; }

# shown TEXT VALUE COMMAND...: checks that COMMAND succeeds, and reports a row of the demo's table.
# If COMMAND has succeeded, the row contains VALUE.
shown() {
	if "${@:3}"; then
		ok "$1"
		report "# row: $1 | $2"
	else
		fail "$1 (failed: ${*:3})"
		report "# row: $1 | FAILED"
	fi
}

say "loading the simulated GPU driver and an RDMA core with peer memory"
load_neighbours

say "without the module: registering GPU memory"
shown "ibv_reg_mr of GPU memory, without module" "EFAULT (bad address)" \
	gpuverbs register --offset 0 --length 64K --expect EFAULT
shown "ucx_info -d, without module" "no GPU memory" sees_no_gpu

say "modprobe nv_peer_mem"
load_module
shown "nv_peer_mem.ko loaded" "version $(cat /sys/module/nv_peer_mem/version)" \
	grep -q '^nv_peer_mem ' /proc/modules
shown "clients registered with the RDMA core" "$(client_names)" test -e "$PEERS/nv_mem/version"
shown "ucx_info -d, with module" "GPU memory (cuda)" sees_gpu

# perftest PROGRAM COLUMN OPTION...: runs both sides of a perftest program. Each side has a buffer
# in GPU memory. Checks that the buffers were registered, and sets $figure to the last figure of
# COLUMN.
perftest() {
	local words=("$1" -d rxe0 -F "${@:3}" --mmap=/dev/nvidia-lab) before server
	figure=
	before=$(peer nv_mem num_alloc_mrs)
	"${words[@]}" --mmap-offset=0 >/tmp/server 2>&1 &
	server=$!
	wait_for "the server of $1" sh -c 'ss -ltn | grep -q ":18515 "' || return 1
	"${words[@]}" --mmap-offset=$((8 << 20)) "$ADDRESS" >/tmp/client 2>&1 && wait "$server" || return 1
	[ "$(peer nv_mem num_alloc_mrs)" = $((before + 2)) ] || return 1
	figure=$(awk -v column="$2" '$1 ~ /^[0-9]+$/ && NF >= 4 { last = $column } END { print last }' /tmp/client)
}

for program in "ib_write_bw 65536 4 MB/s" "ib_read_bw 65536 4 MB/s" "ib_send_lat 4096 5 us"; do
	read -r name size column unit <<<"$program"
	say "stock $name, GPU memory at both ends"
	perftest "$name" "$column" -n 100 -s "$size" || cat /tmp/server /tmp/client
	shown "$name --mmap, 100 x $size bytes" "$figure $unit" test -n "$figure"
done

say "a pattern of our own by RDMA write; the host looks into the file behind the GPU's BAR"
shown "3145745 bytes, compared outside the guest" equal transfer_seen 0 8M 3145745 7
unload_module

say "modprobe nv_peer_mem persistent_api_support=0; GPU memory freed while registered"
load_module persistent_api_support=0
revoke >/tmp/revoke && revoked=0 || revoked=1
cat /tmp/revoke
status() { sed -n "s/^$1=//p" /tmp/revoke; }
shown "RDMA write before the free" "$(status first_status)" test "$(status first_status)" = IBV_WC_SUCCESS
shown "RDMA write after the free" "$(status status)" test "$(status status)" != IBV_WC_SUCCESS
shown "the memory's next owner" untouched test "$(status reuse_intact)$revoked" = yes0
unload_module
left=$(live_gauges "$NVIDIA" "$CORE")
shown "objects left in driver and RDMA core" 0 test -z "$left"
shown "violations of a contract" 0 test -z "$(violations "$NVIDIA" "$CORE")"
