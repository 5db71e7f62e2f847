# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a ConnectX that goes away while GPU memory is registered, or is registered, used and freed all the time
. /lab/server.sh
load_neighbours
device=$(basename "$(readlink "/sys/class/infiniband/$HCA/device")")
driver=/sys/bus/pci/drivers/mlx5_core

port_is_there() { grep -q ACTIVE "/sys/class/infiniband/$HCA/ports/1/state"; }

# lose WAY: takes the device from the programs in the way WAY. regain WAY: gives the device back.
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

# start_load: starts processes that register, transfer and free GPU memory, and waits until the
# device has filled many keys. end_load: kills these processes, unless they have ended because the
# device went away.
start_load() {
	keys=$(nic count umr)
	gpuverbs stress --seed "$SEED" --registrations 1000000 --expect "${expected[$support]}" >/dev/null 2>&1 &
	wait_for "registrations" is_busy
}
is_busy() { [ "$(nic count umr)" -gt $((keys + 200)) ]; }
end_load() {
	pkill -KILL gpuverbs || true
	wait
	wait_for "the end of the processes" eval '! pgrep gpuverbs'
}

expected=(revoked pinned)
use_seed
for support in 1 0; do
	load_module "persistent_api_support=$support"
	for way in unbound removed unloaded died; do
		text="persistent_api_support=$support, $way"
		hold gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold
		equal "$text: registered" 2 "$(core_count live_mapped)"
		check "$text: the pair is listed" grep -qF "$device" /proc/driver/nv_peer_mem/pairs
		lose "$way"
		[ "$way" != removed ] ||
			equal "$text: no pair of a device that is gone" '' "$(grep -F "$device" /proc/driver/nv_peer_mem/pairs)"
		# A process that ends frees its memory, and the driver calls back.
		kill -9 "$held"
		ended_well || true
		wait_for "everything to go" at_rest
		nothing_left "$text"
		check "$text: nothing holds the module" test "$(cat /sys/module/nv_peer_mem/refcnt)" = 0
		regain "$way"
		start_load
		lose "$way"
		end_load
		wait_for "everything to go" at_rest
		nothing_left "$text, in use"
		regain "$way"
		check "$text: and then it works" gpuverbs transfer --from 0 --to 8M --length 300001 --seed 4
	done
	unload_module
done
know_reports
