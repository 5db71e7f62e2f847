# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Whose kernel this is: in a chroot or a container it is that of another system, and its
# modules are, too.

# leave SCRIPT: what a package that is removed does with the module, by the service's
# script, which may be gone, or that of an earlier version: it is configuration. While
# programs have GPU memory registered, this says so, and nothing is changed.
leave() {
	if kernel_of_another; then
		echo "nv_peer_mem: the kernel belongs to another system (chroot or container): its module is left alone."
	elif [ -x "$1" ]; then
		"$1" stop
	fi
}

# kernel_of_another: whether modules are not this system's to unload.
kernel_of_another() {
	in_chroot || in_container || ! may_unload
}

# in_chroot: whether the first process has another root directory. Without /proc nobody
# knows: so it is when an image is built.
in_chroot() {
	first=$(stat -Lc %d:%i /proc/1/root/. 2>/dev/null)
	[ "$first" != "$(stat -Lc %d:%i /)" ]
}

# in_container: by the marks that container engines leave, or because the first process is
# not the machine's: its namespace has a number that no kernel changes. What it is, in
# $container.
in_container() {
	container=
	if [ -r "${NVPM_SYSROOT-}/run/systemd/container" ]; then
		read -r container <"${NVPM_SYSROOT-}/run/systemd/container" || :
	elif [ -e "${NVPM_SYSROOT-}/run/.containerenv" ]; then
		container=podman
	elif [ -e "${NVPM_SYSROOT-}/.dockerenv" ]; then
		container=docker
	else
		case $(readlink "${NVPM_SYSROOT-}/proc/self/ns/pid" 2>/dev/null) in
		'' | 'pid:[4026531836]') ;;
		*) container='processes of its own' ;;
		esac
	fi
	[ -n "$container" ]
}

# may_unload: whether this process has the capability CAP_SYS_MODULE, number 16.
may_unload() {
	case $(sed -n 's/^CapEff:.*\([0-9a-f]\)[0-9a-f]\{4\}$/\1/p' /proc/self/status 2>/dev/null) in
	[02468ace]) return 1 ;;
	esac
}
