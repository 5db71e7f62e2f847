# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the tests for hardware notice mistakes of the module: a mistake for each step
# Gpu: 512
load_neighbours
state=/var/lib/nv_peer_mem-hardware

# noticed FAULT MODE STEP...: runs the steps with the module that has this mistake. Each step must be
# on the page as failed in this mode.
noticed() {
	local fault=$1 mode=$2 built=/run/$1 step only=()
	mkdir -m 700 "$built"
	cp /opt/hardware/hardware-client "/opt/hardware-faults/$fault"/*.ko "$built"
	for step in "${@:3}"; do only+=(--only "$step"); done
	sh /opt/hardware/tests/hardware/run --built "$built" --no-measure "${only[@]}" >/tmp/said 2>&1 || true
	sed -n '/^nv_peer_mem on hardware/,$p' /tmp/said
	for step in "${@:3}"; do
		check "$fault: $step notices" grep -qE "^  $mode/gpu0-$HCA/$step \((failed|hung)\)$" "$state"/*/page.txt
	done
	rm -rf "$state"
}

noticed wrong-errno persistent kinds across forked
noticed small persistent sizes
noticed few persistent many
noticed loud persistent in-use
know_reports
noticed elsewhere persistent transfers atomics dma-buf
noticed never-revoked revocable freed freed-meanwhile
noticed never-unpinned persistent killed
spoil "pins of modules with mistakes are left"
