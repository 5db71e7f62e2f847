# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads the exported symbols of the neighbours' installed modules. Installed modules come without
# Module.symvers, but a module's file contains the names of its exports and, for kernels that check
# versions, also their versions.

# modinfo WORD...: runs kmod's modinfo. busybox's shell has a modinfo of its own, which comes before
# PATH, and does not know -k.
case $(modinfo --version 2>/dev/null) in
kmod*) ;;
*)
	modinfo() {
		for program in /usr/sbin/modinfo /sbin/modinfo /usr/bin/modinfo /bin/modinfo; do
			[ ! -x "$program" ] || break
		done
		"$program" "$@"
	}
	;;
esac

check_modinfo() { modinfo --version >/dev/null 2>&1 || die "modinfo is missing: install it (package kmod)."; }

# check_depmod NAME ROOT: ends with an error if the module NAME is needed and there, and depmod has not
# listed it, because depmod has never run for this kernel, or a full disk has cut the list short.
# modinfo would not find the module. The file's name may be longer than NAME. Below ROOT, if that is
# not empty, module_file also finds modules that are not listed.
check_depmod() {
	[ -z "$2" ] && [ ! -s "/lib/modules/$KVER/modules.dep.bin" ] || return 0
	there=$(find "/lib/modules/$KVER/" -name "$1*.ko*" -print 2>/dev/null | while IFS= read -r file; do
		[ "$(modinfo -F name "$file" 2>/dev/null)" != "$1" ] || printf '%s\n' "$file"
	done | head -n 1)
	[ -z "$there" ] ||
		die "depmod has not listed the modules of kernel $KVER, such as $there (no modules.dep.bin, or an empty one): run depmod $KVER as root."
}

# module_file NAME ROOT: prints the file that modprobe would load for KVER. Fails if there is no such
# file, because the module is not installed, or is built into the kernel. ROOT is empty, or the
# directory below which the module is installed; in a container's root, depmod may not have run.
module_file() {
	if [ -z "$2" ]; then
		file=$(modinfo -k "$KVER" -F filename "$1" 2>/dev/null) || return 1
	elif ! file=$(modinfo -b "$2" -k "$KVER" -F filename "$1" 2>/dev/null) || [ ! -e "$file" ]; then
		file=$(find "$2/lib/modules/$KVER/" -name "$1.ko*" -print 2>/dev/null | head -n 1)
	fi
	[ -e "$file" ] && printf '%s\n' "$file"
}

# unpack FILE TO: writes the module in FILE to TO, without its compression.
unpack() {
	case $1 in
	*.xz) program=xz package=xz-utils ;;
	*.zst) program=zstd package=zstd ;;
	*.gz) program=gzip package=gzip ;;
	*)
		cat "$1" >"$2" || die "$1 cannot be read: install it again."
		return
		;;
	esac
	command -v "$program" >/dev/null || die "$1 is compressed, and $program is missing: install it (package $package)."
	"$program" -dc "$1" >"$2" || die "$1 cannot be read: install it again."
}

# exports UNPACKED FILE: prints the names that the module in UNPACKED exports. Messages name FILE,
# the installed file of the module.
exports() {
	command -v nm >/dev/null || die "nm is missing: install it (package binutils)."
	nm "$1" >"$1.names" 2>/dev/null || die "$2 cannot be read: install it again."
	sed -n 's/.* __ksymtab_\(.*\)$/\1/p' "$1.names"
}

checks_versions() { [ "$(config_value CONFIG_MODVERSIONS)" = y ]; }

# symbol_version MODULE NAME: prints the version of symbol NAME, which is a checksum of 8 digits.
# The version is the value of the symbol __crc_NAME, or the word to which __crc_NAME points in its
# section. Prints zeros if the kernel does not check versions. Prints nothing if MODULE has no
# __crc_NAME. Also prints nothing for an undefined __crc_NAME, because the builds of older kernels
# leave such a symbol if they could compute no checksum.
symbol_version() {
	if ! checks_versions; then
		printf '00000000'
		return
	fi
	crc=$(readelf -sW "$1" | awk -v name="__crc_$2" '$8 == name { print $2, $7 }')
	section=${crc#* }
	case $crc in
	'' | *' UND') ;;
	*' ABS') printf '%s' "${crc% *}" | tail -c 8 ;;
	*)
		offset=$(readelf -SW "$1" | sed -n "s/^ *\[ *$section\] *[^ ]* *[^ ]* *[0-9a-f]* *\([0-9a-f]*\).*/\1/p")
		od -An -tx4 -j $((0x$offset + 0x${crc% *})) -N 4 "$1" | tr -d ' \n'
		;;
	esac
}

# list_symbols UNPACKED FILE MODULE NAME...: prints a line of a Module.symvers for each NAME, which
# MODULE exports. UNPACKED is the module's file without its compression; messages name the installed
# FILE.
list_symbols() {
	unpacked=$1 file=$2 module=$3
	shift 3
	for symbol; do
		checksum=$(symbol_version "$unpacked" "$symbol")
		[ "$checksum" ] ||
			die "kernel $KVER checks symbol versions, and $file has none: build that module for this kernel again."
		printf '0x%s\t%s\t%s\tEXPORT_SYMBOL\t\n' "$checksum" "$symbol" "$module"
	done
}

# write_symbols: writes the symbols of the core and the driver into files next to the sources, for
# the kernel's build.
write_symbols() {
	if [ "$core" ]; then
		core_symbols=$top/ib_core.symvers
		cp "$work/Module.symvers" "$core_symbols"
	fi
	if [ "$driver" ] && [ -z "$driver_symbols" ]; then
		driver_symbols=$top/nvidia.symvers
		unpack "$driver" "$work/nvidia.ko"
		exports "$work/nvidia.ko" "$driver" >"$work/nvidia.exports"
		# shellcheck disable=SC2046 # a list of names
		list_symbols "$work/nvidia.ko" "$driver" nvidia $(grep '^nvidia_p2p_' "$work/nvidia.exports") >"$driver_symbols"
		[ -s "$driver_symbols" ] || die "$driver exports no nvidia_p2p_* function, so it is not NVIDIA's driver: install that (package $driver_packages)."
	fi
}
