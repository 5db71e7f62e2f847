# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Whose kernel this is: in a chroot or a container it is that of another system, and its
# modules are, too.

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

# in_container: by the marks that container engines leave; whose, in $container.
in_container() {
	container=
	if [ -r "${NVPM_SYSROOT-}/run/systemd/container" ]; then
		read -r container <"${NVPM_SYSROOT-}/run/systemd/container" || :
	elif [ -e "${NVPM_SYSROOT-}/run/.containerenv" ]; then
		container=podman
	elif [ -e "${NVPM_SYSROOT-}/.dockerenv" ]; then
		container=docker
	fi
	[ -n "$container" ]
}

# may_unload: whether this process has the capability CAP_SYS_MODULE, number 16.
may_unload() {
	case $(sed -n 's/^CapEff:.*\([0-9a-f]\)[0-9a-f]\{4\}$/\1/p' /proc/self/status 2>/dev/null) in
	[02468ace]) return 1 ;;
	esac
}
