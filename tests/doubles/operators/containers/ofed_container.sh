# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The Network Operator's OFED container, as doca-driver-build of July 2026 behaves (its Go program,
# network-operator 26.7.0-beta.4). OFED is a directory of /operators.

OFED_SHOWN=/run/mellanox/drivers

# ofed_begin: begins a start of the container. The container unloads nvidia_peermem. If programs use
# nvidia_peermem, the start ends here, before any module of OFED is unloaded.
ofed_begin() {
	: >>"$OFED_SHOWN/.lock"
	rm -f "$OFED_SHOWN/.driver-ready"
	[ -d /sys/module/nvidia_peermem ] || return 0
	if [ "$(cat /sys/module/nvidia_peermem/refcnt)" != 0 ]; then
		echo 'Module nvidia_peermem is used and will FAIL driver reload, aborting execution.'
		return 1
	fi
	rmmod nvidia_peermem
}

# ofed_load CORE: lets openibd replace the RDMA core, unless CORE is loaded already. Then shows the
# sources of CORE to the node. A real container builds for minutes between ofed_begin and ofed_load.
ofed_load() {
	local loaded=/sys/module/ib_core/notes/.note.gnu.build-id
	if ! cmp -s <(objcopy -O binary --only-section=.note.gnu.build-id "$1/modules/ib_core.ko" /dev/stdout) "$loaded"; then
		openibd_stop || return 1
		openibd_start "$1"
	fi
	! mountpoint -q "$OFED_SHOWN/usr/src" || umount -l -R "$OFED_SHOWN/usr/src"
	mkdir -p "$OFED_SHOWN/usr/src"
	mount --rbind "$1/usr/src" "$OFED_SHOWN/usr/src"
	: >"$OFED_SHOWN/.driver-ready"
}

# ofed_start CORE: starts the container.
ofed_start() { ofed_begin && ofed_load "$1"; }

# ofed_stop: ends the container. OFED stays loaded, and its files are no longer shown.
ofed_stop() {
	rm -f "$OFED_SHOWN/.driver-ready"
	umount -l -R "$OFED_SHOWN/usr/src"
	rmdir "$OFED_SHOWN/usr/src" "$OFED_SHOWN/usr"
}
