# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a ConnectX that goes away while GPU memory is registered, whose process then ends
. /lab/server.sh
load_neighbours
device=$(basename "$(readlink "/sys/class/infiniband/$HCA/device")")
driver=/sys/bus/pci/drivers/mlx5_core

port_is_there() { grep -q ACTIVE "/sys/class/infiniband/$HCA/ports/1/state"; }

# lose WAY: takes the device from the programs. regain WAY: gives the device back.
lose() {
	case $1 in
	died) nic die ;;
	unbound) echo "$device" >"$driver/unbind" ;;
	removed) echo 1 >"/sys/bus/pci/devices/$device/remove" ;;
	unloaded) rmmod mlx5_ib ;;
	esac
}
regain() {
	case $1 in
	died) nic come_back && echo "$device" >"$driver/unbind" && echo "$device" >"$driver/bind" ;;
	unbound) echo "$device" >"$driver/bind" ;;
	removed) echo 1 >/sys/bus/pci/rescan ;;
	unloaded) modprobe mlx5_ib ;;
	esac >/dev/null
	wait_for "the device" port_is_there
}

for support in 1 0; do
	load_module "persistent_api_support=$support"
	for way in unbound removed unloaded died; do
		text="persistent_api_support=$support, $way"
		hold gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold
		equal "$text: registered" 2 "$(core_count live_mapped)"
		lose "$way"
		# A process that ends frees its memory, and the driver calls back.
		kill -9 "$held"
		ended_well || true
		wait_for "everything to go" at_rest
		nothing_left "$text"
		check "$text: nothing holds the module" test "$(cat /sys/module/nv_peer_mem/refcnt)" = 0
		regain "$way"
		check "$text: and then it works" gpuverbs transfer --from 0 --to 8M --length 300001 --seed 4
	done
	unload_module
done
know_reports
