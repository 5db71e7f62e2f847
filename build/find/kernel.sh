# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Finds the kernel: its release, headers and compiler.

# choose_kernel: sets KVER, unless the user has set it. If the user gives a tree in KDIR, KVER
# becomes the release of that tree, and otherwise the release of the running kernel. (build/make
# also calls this function.)
choose_kernel() {
	[ -n "${KVER:-}" ] || KVER=$(release_of_tree) || KVER=$(release_of_path) || KVER=$(uname -r)
}

# release_of_path: prints the release in the path of KDIR, if the path is below /lib/modules. Fails
# otherwise. If KDIR has no kernel tree, the error message names the kernel of this release, whose
# headers the user meant.
release_of_path() {
	case ${KDIR:-} in
	/lib/modules/?* | /usr/lib/modules/?*)
		of=${KDIR#*/lib/modules/}
		printf '%s\n' "${of%%/*}"
		;;
	*) return 1 ;;
	esac
}

# release_of_tree: prints the release of the kernel tree KDIR. Fails if KDIR is empty, or if the
# tree does not name its release. UTS_RELEASE is read first. In Debian's headers before Debian 13,
# the file kernel.release contains another name than /lib/modules has.
release_of_tree() {
	[ -n "${KDIR:-}" ] || return 1
	sed -n 's/^#define UTS_RELEASE "\(.*\)"$/\1/p' "$KDIR/include/generated/utsrelease.h" 2>/dev/null | grep . ||
		cat "$KDIR/include/config/kernel.release" 2>/dev/null
}

find_kernel() {
	choose_kernel
	distribution
	chosen_tree=${KDIR:+yes}
	KDIR=${KDIR:-/lib/modules/$KVER/build}
	[ "$chosen_tree" ] || [ -e "$KDIR/Makefile" ] ||
		die "no headers of kernel $KVER: install $headers_package, or give KDIR=."
	[ -r "$KDIR/.config" ] || die "KDIR=$KDIR is not a configured kernel tree (no .config): give the directory of the headers, as /lib/modules/KVER/build (for kernel $KVER package $headers_package)."
	release=$(cat "$KDIR/include/config/kernel.release" 2>/dev/null) || release=$KVER
	! older_than "$oldest_kernel" || die "kernel $release is older than $oldest_kernel, the oldest that this module can be built for."
	case $(uname -m) in
	x86_64) NVPM_TARGET=x86_64-linux-gnu ;;
	aarch64) NVPM_TARGET=aarch64-linux-gnu ;;
	*) die "there is no NVIDIA driver for $(uname -m)." ;;
	esac
}

# find_pahole: ends with an error if the kernel's build describes types (BTF) of modules by pahole,
# and pahole is missing. The kernel's build does this where the headers have vmlinux.
find_pahole() {
	[ "$(config_value CONFIG_DEBUG_INFO_BTF_MODULES)" = y ] && [ -e "$KDIR/vmlinux" ] || return 0
	command -v "${PAHOLE:-pahole}" >/dev/null ||
		die "${PAHOLE:-pahole} is missing, which the build of modules for kernel $KVER runs (CONFIG_DEBUG_INFO_BTF_MODULES): install it (package $pahole_package)."
}

# config_value NAME: prints the value of a setting in the kernel's configuration, or nothing if it
# is not set.
config_value() {
	sed -n "s/^$1=\"\\{0,1\\}\\([^\"]*\\)\"\\{0,1\\}\$/\\1/p" "$KDIR/.config"
}

# older_than MAJOR.MINOR: succeeds if the kernel is older than this version.
older_than() {
	printf '%s\n' "$release" | awk -F '[.]' -v than="$1" '
		{ split(than, limit); minor = $2 + 0 }
		$1 !~ /^[0-9]+$/ { exit 1 }
		{ exit !($1 + 0 < limit[1] + 0 || ($1 + 0 == limit[1] + 0 && minor < limit[2] + 0)) }'
}

# find_compiler: sets $NVPM_COMPILER to make's argument that selects clang, if clang compiled the
# kernel. Such a kernel needs modules that clang compiled, too. $NVPM_COMPILER is empty for any
# other kernel, or if the user gives LLVM= or CC=.
find_compiler() {
	NVPM_COMPILER=
	[ "$(config_value CONFIG_CC_IS_CLANG)" = y ] || return 0
	# The kernel's build ignores CC in the environment, but obeys CC as an argument of make.
	case ${LLVM:+LLVM=}${MAKEFLAGS:-} in *LLVM=* | *' CC='*) return 0 ;; esac
	NVPM_COMPILER=CC=clang
	tools=clang
	if [ "$(config_value CONFIG_LD_IS_LLD)" = y ]; then
		NVPM_COMPILER=LLVM=1
		tools='clang ld.lld llvm-nm llvm-objcopy'
	fi
	for tool in $tools; do
		command -v "$tool" >/dev/null ||
			die "kernel $KVER was built with clang, and $tool is missing: install clang, lld and llvm, or choose a version with LLVM=-19 (for example)."
	done
}
