# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Finds the dkms packages that build the two neighbours: the RDMA core and the NVIDIA driver.

# dkms_knows NEIGHBOUR: prints NAME/VERSION of each dkms package that builds NEIGHBOUR, which is
# `core` or `driver`. The RDMA core is recognised by the package's name. The driver's packages have
# many names, so the driver is recognised by its module.
dkms_knows() {
	for conf in "${dkms_tree:-/var/lib/dkms}"/*/*/source/dkms.conf; do
		known=${conf%/source/dkms.conf}
		known=${known#"${known%/*/*}"/}
		case $1/$known in
		core/mlnx-ofed-kernel/* | core/mlnx-ofa_kernel/*) [ -e "$conf" ] || continue ;;
		driver/*) grep -qsE "^[[:blank:]]*BUILT_MODULE_NAME(\[[0-9]+\])?=[\"']?nvidia[\"']?[[:blank:]]*(#|\$)" "$conf" || continue ;;
		*) continue ;;
		esac
		printf '%s\n' "$known"
	done
}

# not_installed NAME/VERSION: succeeds if dkms has not installed any version of this package for the
# kernel. If dkms has, the kernel prefers another file, or the package's module is not the right one.
not_installed() {
	[ ! -L "${dkms_tree:-/var/lib/dkms}/${1%/*}/kernel-$KVER-$(uname -m)" ]
}

# missing NEIGHBOUR TEXT ADVICE: ends with an error that contains TEXT. If dkms has a package with
# the neighbour, and has not built it for this kernel yet, the error names the package. Otherwise
# the error contains ADVICE. The function does nothing if dkms builds the neighbour before the
# module. It only warns if KBUILD_MODPOST_WARN is set, because the module then only has to compile.
missing() {
	case " ${NVPM_LATER-} " in *" $1 "*) return 0 ;; esac
	known=$(dkms_knows "$1" | tail -n 1)
	if [ "$known" ] && not_installed "$known"; then
		set -- "$1" "$2: dkms knows $known, but has not built it for this kernel (dkms install $known -k $KVER says why)."
	else
		set -- "$1" "$2: $3"
	fi
	[ "${KBUILD_MODPOST_WARN:-}" ] || die "$2"
	[ "$quiet" ] || printf 'nv_peer_mem: warning: %s\n' "$2" >&2
}
