# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The GPU Operator's driver container, as gpu-driver-container of August 2026 (06a208c) behaves on
# Ubuntu 24.04, and with DRIVER_SYSTEM=rhel on RHEL 8 to 10, whose script has another order. DRIVER is
# a version that /operators has. The container builds the driver itself, so the headers of the kernel
# are in its root directory.

DRIVER_SHOWN=/run/nvidia/driver
DRIVER_FLAG=/run/nvidia/validations/.driver-ctr-ready

# references MODULE: prints how many users the module has.
references() { cat "/sys/module/$1/refcnt"; }

# driver_unload: unloads the driver, as the container does when it starts and when it ends. Each of
# three modules that are loaded may have a reference to nvidia. A further reference, or a user of one
# of the three, makes the container refuse before anything is unloaded. If a module cannot be
# unloaded after that, the container does not notice.
driver_unload() {
	local module expected=0 used=0 list=''
	for module in nvidia_modeset nvidia_uvm nvidia_peermem; do
		[ -f "/sys/module/$module/refcnt" ] || continue
		expected=$((expected + 1))
		used=$((used + $(references "$module")))
		list+=" $module"
	done
	[ -f /sys/module/nvidia/refcnt ] || return 0
	if [ "$(references nvidia)" -gt "$expected" ] || [ "$used" -gt 0 ]; then
		echo 'Could not unload NVIDIA driver kernel modules, driver is in use' >&2
		return 1
	fi
	list+=' nvidia'
	# RHEL's script names nvidia before the client that uses it, so nvidia stays.
	[ "${DRIVER_SYSTEM-}" != rhel ] || list=${list/ nvidia_peermem nvidia/ nvidia nvidia_peermem}
	# shellcheck disable=SC2086 # words
	rmmod $list || true
}

# driver_root DRIVER: prepares the root directory of the container.
driver_root() {
	local root=/run/driver-root
	mkdir -p "$root"
	! mountpoint -q "$root" || umount -l -R "$root"
	mount --bind "/operators/driver-$1" "$root"
	printf '%s\n' "$root"
}

# driver_show ROOT: shows the root directory to the node.
driver_show() {
	mkdir -p "$DRIVER_SHOWN"
	mount --rbind "$1" "$DRIVER_SHOWN"
}

driver_hide() { ! mountpoint -q "$DRIVER_SHOWN" || umount -l -R "$DRIVER_SHOWN"; }

# driver_start DRIVER: starts the container. If DRIVER is the driver of the last start, and the module
# nvidia is still loaded, the container installs only programs: its root directory then has no
# module and no headers, and no module is loaded.
driver_start() {
	local root
	echo 1 >/run/nvidia/nvidia-driver.pid
	if [ -f /sys/module/nvidia/refcnt ] && [ "$(cat /run/nvidia/nvidia-driver.state 2>/dev/null)" = "$1" ]; then
		driver_hide
		mkdir -p "/run/programs/usr/src"
		driver_show /run/programs
	else
		driver_unload || return 1
		driver_hide
		root=$(driver_root "$1")
		driver_headers "$root"
		modprobe -d "$root" nvidia
		modprobe -d "$root" nvidia-uvm
		modprobe -d "$root" nvidia-modeset
		driver_show "$root"
		echo "$1" >/run/nvidia/nvidia-driver.state
	fi
	wait_for "the GPU" test -c /dev/nvidia-lab
	: >"$DRIVER_FLAG"
}

# driver_headers ROOT: puts the kernel's headers into the root directory.
driver_headers() {
	local directory
	for directory in /run/sources/linux-headers-*; do
		mkdir -p "$1/usr/src/${directory##*/}"
		mount --bind "$directory" "$1/usr/src/${directory##*/}"
	done
	for directory in /usr/lib/linux-kbuild-*; do
		mkdir -p "$1$directory"
		mount --bind "$directory" "$1$directory"
	done
}

# driver_stop: ends the container, first by its hook and then by a signal. If the driver is in use,
# the container is killed, and its modules and its root directory stay on the node.
driver_stop() {
	rm -f "$DRIVER_FLAG"
	driver_unload || return 0
	driver_hide
	rm -f /run/nvidia/nvidia-driver.pid
}
