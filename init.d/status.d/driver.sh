# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The NVIDIA driver, and NVIDIA's own module for the same purpose.

driver_facts() {
	if loaded nvidia; then
		text_of /sys/module/nvidia/version || text=unknown
		fact driver nvidia good "loaded, version $text"
		# The kernel marks modules that are not under a free licence.
		text_of /sys/module/nvidia/taint || text=
		case $text in *P*) flavour_fact proprietary ;; *) flavour_fact open ;; esac
	elif driver=$(installed_driver); then
		fact driver nvidia warn "not loaded; version $(modinfo -F version "$driver") is installed" \
			"modprobe nvidia; if there is no GPU that it supports, the kernel's log says so."
		case $(modinfo -F license "$driver") in *GPL*) flavour_fact open ;; *) flavour_fact proprietary ;; esac
	else
		fact driver nvidia bad "none for kernel $kernel" "$install_driver"
	fi
	peermem_facts
}

flavour=

# flavour_fact open|proprietary: leaves it in $flavour, for devices.awk.
flavour_fact() {
	flavour=$1
	if [ "$1 $(rust)" = "proprietary in-kernel" ]; then
		fact driver flavour bad "proprietary, and nv_peer_mem was built with the kernel's Rust crates, which it rules out" "$(rebuild)"
	else
		fact driver flavour good "$1"
	fi
}

# installed_driver: the name of NVIDIA's module. Debian has files of other names, which are
# nvidia all the same.
installed_driver() {
	if modinfo -F license nvidia >/dev/null 2>&1; then
		echo nvidia
		return
	fi
	for name in $(files_of_nvidia); do
		if [ "$(modinfo -F name "$name" 2>/dev/null)" = nvidia ]; then
			echo "$name"
			return
		fi
	done
	return 1
}

files_of_nvidia() {
	sed -n 's|^\([^:]*/\)\{0,1\}\(nvidia[^/:]*\)\.ko[^/:]*:.*|\2|p' "$root/lib/modules/$kernel/modules.dep" 2>/dev/null | sort
}

# peermem_facts: nvidia_peermem registers the same memory, and only one can.
peermem_facts() {
	if [ -e "$root/sys/module/$module/holders/nvidia_peermem" ]; then
		fact driver nvidia_peermem good "a name only, for programs that look for it: it belongs to nv_peer_mem"
		return
	elif loaded nvidia_peermem; then
		fact driver nvidia_peermem bad "loaded: it serves the same memory, and only one module can" \
			"modprobe -r nvidia_peermem && echo 'blacklist nvidia_peermem' >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf && $service restart"
		return
	fi
	file=$(grep -lsE '^[[:space:]]*nvidia[-_]peermem' "$root"/etc/modules-load.d/*.conf \
		"$root"/usr/lib/modules-load.d/*.conf "$root/etc/modules" | head -n 1)
	if [ -n "$file" ]; then
		fact driver nvidia_peermem warn "not loaded now, but ${file#"$root"} loads it on boot" \
			"Remove nvidia-peermem from that file: only one module can serve GPU memory."
	else
		fact driver nvidia_peermem good "not loaded, so it does not compete"
	fi
}
