# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what KIRO does: a client syncs a server's memory into its GPU, over rdma_cm
. /lab/hosts.sh
load_gpu
load_rdma
modprobe rdma_ucm
both_up

length=$(((1 << 20) + 8))
port=60010

# serve KIND: gpusync's server on the right, with memory of that kind, until its
# client has connected. connect: its client on the left.
served=0
serve() {
	hold_from listening gpusync server "$1" "$ADDRESS" "$port" "$length"
	tell "server-$served" listens
	until_holding
}
connect() {
	hear "server-$served"
	hold gpusync client "$OTHER_ADDRESS" "$port"
}
both() {
	served=$((served + 1))
	right serve "$1"
	left connect
}

# put SEED: other contents on the right. synced SEED: read by the left one, and
# there as the host sees it.
put() {
	right order put "$1"
	barrier "put-$1"
}
synced() {
	left order sync
	left check "the server's memory $1 is in this GPU" in_gpu 0 "$length" "$1"
	barrier "synced-$1"
}

not_without_module() {
	hear server-1
	! gpusync client "$OTHER_ADDRESS" "$port" 2>/tmp/client </dev/null &&
		grep -x 'registering GPU memory: Bad address' /tmp/client
}
served=1
right serve host
left check "without the module the client's GPU memory is refused" not_without_module
right check "the server has served" ended_well

load_module
for kind in host gpu; do
	both "$kind"
	put "1$served"
	synced "1$served"
	put "2$served"
	left check "nothing comes before it is synced" in_gpu 0 "$length" "1$served"
	synced "2$served"
	check "the $kind memory's server and client end well" ended_well
	barrier "end-$kind"
done
left equal "registrations of GPU memory" 2 "$(peer nv_mem num_alloc_mrs)"
right equal "registrations of GPU memory" 1 "$(peer nv_mem num_alloc_mrs)"
equal "registrations ended" "$(peer nv_mem num_alloc_mrs)" "$(peer nv_mem num_dealloc_mrs)"
