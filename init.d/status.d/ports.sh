# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The ports of the RDMA devices and their firmware.

# port_facts: a port that nobody uses is no defect of a machine that has another,
# but worth a word; without any, nothing leaves the machine.
port_facts() {
	down=bad
	for port in "$root"/sys/class/infiniband/*/ports/*; do
		text_of "${port#"$root"}/state" || continue
		case $text in *ACTIVE) down=warn ;; esac
	done
	for device in "$root"/sys/class/infiniband/*; do
		[ -e "$device" ] || continue
		base "$device"
		for port in "$device"/ports/*; do
			port_fact "RDMA device $base" "${port#"$root"}"
		done
		firmware_fact "RDMA device $base" "${device#"$root"}"
	done
}

# port_fact SECTION DIRECTORY
port_fact() {
	text_of "$2/state" || return 0
	state_of_port=${text#*: }
	text_of "$2/phys_state"
	physical=${text#*: }
	text_of "$2/rate"
	rate=$text
	text_of "$2/link_layer"
	layer=$text
	value="$state_of_port, $physical, $rate, $layer"
	case $state_of_port:$layer in
	ACTIVE:*) fact "$1" "port ${2##*/}" good "$value" ;;
	INIT:InfiniBand | ARMED:InfiniBand)
		fact "$1" "port ${2##*/}" "$down" "$value" "No subnet manager has set this port up: start one (opensm) on a machine or a switch of this network." ;;
	*:Ethernet) fact "$1" "port ${2##*/}" "$down" "$value" "Look at cable and switch, then at the interface: rdma link names it, ip link set up turns it on." ;;
	*) fact "$1" "port ${2##*/}" "$down" "$value" "Look at cable and switch; ibstat and iblinkinfo say more." ;;
	esac
}

# firmware_fact SECTION DIRECTORY
firmware_fact() {
	text_of "$2/fw_ver" && [ -n "$text" ] || return 0
	version=$text
	text_of "$2/board_id"
	fact "$1" firmware none "$version${text:+, board $text}"
}
