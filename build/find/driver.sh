# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Finds the NVIDIA driver that the kernel would load, with its flavour, its symbols, and its header
# nv-p2p.h.

find_driver() {
	find_driver_module
	find_driver_header
	find_driver_symbols
}

find_driver_module() {
	choose_driver
	version='' proprietary='' flavour=''
	[ "$driver" ] || return 0
	case $(modinfo -F license "$driver") in
	*GPL*) flavour=open ;;
	*) proprietary=yes ;;
	esac
	version=$(modinfo -F version "$driver") || die "$driver cannot be read: install the NVIDIA driver again (package $driver_packages)."
	case ${version%%.*} in
	"" | *[!0-9]*) ;;
	*)
		[ "${version%%.*}" -ge "$oldest_driver" ] ||
			die "the NVIDIA driver $version is too old: install version $oldest_driver or later (package $driver_packages)."
		;;
	esac
}

# choose_driver: sets $driver to the file of the driver that the kernel would load, or to nothing.
# If modprobe would load no driver under the name nvidia, takes the installed driver that is loaded
# now. If none of them is loaded, prefers a proprietary driver, because a module that was built for
# a proprietary driver also loads with an open driver.
choose_driver() {
	driver=
	# modprobe prints a module after the modules that it depends on, so the last match is the
	# driver.
	for name in nvidia $(debian_drivers); do
		file=$(module_file "$name" "$DRIVER_ROOT") || continue
		[ -s "$file" ] || die "$file is empty, as after a full disk: install the NVIDIA driver again (package $driver_packages)."
		[ "$(modinfo -F name "$file")" != nvidia ] || driver=$file
	done
	[ -z "$driver" ] || return 0
	loaded=$(cat /sys/module/nvidia/srcversion 2>/dev/null) || loaded=
	for name in $(drivers_there); do
		# The name of the driver's module is nvidia, even if its file has another name.
		file=$(module_file "$name" "$DRIVER_ROOT") || continue
		[ "$(modinfo -F name "$file")" = nvidia ] || continue
		if [ "$loaded" ] && [ "$(modinfo -F srcversion "$file")" = "$loaded" ]; then
			driver=$file
			break
		fi
		case ${driver:+$(modinfo -F license "$file")} in
		*GPL*) ;;
		*) driver=$file ;;
		esac
	done
}

# drivers_there: prints all installed modules whose names begin with nvidia. One of them may be the
# driver.
drivers_there() {
	sed -n 's|^\([^:]*/\)\{0,1\}\(nvidia[^/:]*\)\.ko[^/:]*:.*|\2|p' "$DRIVER_ROOT/lib/modules/$KVER/modules.dep" 2>/dev/null
}

find_driver_header() {
	nv_include='' sources=$DRIVER_ROOT/usr/src
	if [ -n "${NV_SRC:-}" ]; then
		nv_include=$(first_with nv-p2p.h "$NV_SRC" "$NV_SRC/nvidia" "$NV_SRC/kernel-open/nvidia" "$NV_SRC/kernel/nvidia") ||
			die "NV_SRC=$NV_SRC$driver_from has no nvidia/nv-p2p.h: give the source directory of the NVIDIA driver."
	elif [ "$version" ]; then
		nv_include=$(first_with nv-p2p.h "$sources"/nvidia*-"$version"/nvidia "$sources"/nvidia*-"$version"/kernel*/nvidia) || :
	else
		# If no driver is installed, the newest source is taken.
		# shellcheck disable=SC2046 # a list of directories without spaces
		nv_include=$(first_with nv-p2p.h $(printf '%s\n' "$sources"/nvidia-*/nvidia | sort -rV)) || :
	fi
	if [ -z "$nv_include" ]; then
		nv_include=$top/src/include/nvidia
		found NV_SRC "none${version:+ for driver $version}; using the module's own header"
		return
	fi
	found NV_SRC "$nv_include"
	grep -qs '^#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API' "$nv_include/nv-p2p.h" ||
		die "$nv_include/nv-p2p.h is of an NVIDIA driver before $oldest_driver: install version $oldest_driver or later, with its source (package $driver_packages)."
}

# first_with FILE DIR...: prints the first directory that contains FILE; fails if none does.
first_with() {
	wanted=$1
	shift
	for dir; do
		if [ -e "$dir/$wanted" ]; then
			(cd "$dir" && pwd)
			return
		fi
	done
	return 1
}

find_driver_symbols() {
	driver_symbols=
	# NVIDIA's make writes Module.symvers next to the directory with the header.
	if [ -n "${NV_SRC:-}" ] && dir=$(first_with Module.symvers "$NV_SRC" "${nv_include%/*}"); then
		driver_symbols=$dir/Module.symvers
	elif [ "$driver" ]; then
		found nvidia.ko "$driver (version $version${proprietary:+, proprietary})"
	else
		check_depmod nvidia "$DRIVER_ROOT"
		missing driver "no NVIDIA driver for kernel $KVER${DRIVER_ROOT:+ below $DRIVER_ROOT}" \
			"install it (package $driver_packages), or give NV_SRC= with its Module.symvers."
	fi
}
