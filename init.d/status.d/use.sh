# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What is registered now, by whom, and what has gone wrong: the figures that the
# module keeps.

use_facts() {
	[ -d "$root$figures" ] || return 0
	for figure in regions bytes registrations revocations; do
		text_of "$figures/$figure" && fact use "$figure" none "$text"
	done
	failures no_memory "Registrations found no room in the GPU's BAR1, or the kernel no memory. nvidia-smi -q -d MEMORY shows BAR1: register less, or turn on a large BAR in the firmware (above 4G decoding, resizable BAR)."
	failures not_supported "The memory or the device does not support it: dmesg | grep nv_peer_mem says which."
	failures freed "A program freed GPU memory while it was registering it: correct the program."
	failures driver "The NVIDIA driver refused: dmesg | grep -E 'NVRM|nv_peer_mem'"
	failures left_behind "A process, or its user, has as many registrations as allowed in left_behind: it cannot register more until it frees that memory."
	left_behind
	pairs
	text_of "$figures/regions"
	[ "${text:-0}" = 0 ] || users
}

# users: the processes that may hold registrations.
users() {
	[ "$(id -u)" = 0 ] || fact use processes unread "which processes have an RDMA device open"
	holders | while read -r pid name; do
		fact use "process $pid" none "$name has an RDMA device open"
	done
}

# failures CAUSE ADVICE
failures() {
	text_of "$figures/failed_$1" || return 0
	if [ "$text" = 0 ]; then
		fact use "failed_$1" good 0
	else
		fact use "failed_$1" warn "$text" "$2"
	fi
}

# left_behind: registrations that have ended, and whose memory is pinned still.
left_behind() {
	text_of "$figures/left_behind" || return 0
	case $text in
	0) fact use left_behind none 0 ;;
	*) fact use left_behind warn "$text" "These registrations ended in another process than the one that made them, for example in a child that inherited them: their GPU memory stays pinned until the process that made them frees it, or ends. Deregister where it was registered." ;;
	esac
}

# pairs: what the driver says of each GPU and device that have met.
pairs() {
	[ -r "$root$figures/pairs" ] || return 0
	while read -r gpu device verdict; do
		case $verdict in
		ours) fact use "$gpu $device" good "mapped by nv_peer_mem; the NVIDIA driver agrees" ;;
		driver) fact use "$gpu $device" none "mapped by the NVIDIA driver, page by page: it alone knows the addresses" ;;
		unasked) fact use "$gpu $device" none "mapped by nv_peer_mem; the NVIDIA driver cannot be asked" ;;
		*)
			fact use "$gpu $device" bad "the NVIDIA driver does not let this device reach this GPU" \
				"Use a device below the same PCI switch as the GPU, or see whether the driver's option NVreg_GrdmaPciTopoCheckOverride is 2 (grep -r NVreg_Grdma /etc/modprobe.d)."
			;;
		esac
	done <"$root$figures/pairs"
}
