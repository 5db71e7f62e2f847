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
	failures not_supported "Memory or device cannot do it: dmesg | grep nv_peer_mem says which."
	failures freed "A program freed GPU memory while it was registering it: correct the program."
	failures driver "The NVIDIA driver refused: dmesg | grep -E 'NVRM|nv_peer_mem'"
	text_of "$figures/regions"
	[ "${text:-0}" = 0 ] || holders | while read -r pid name; do
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
