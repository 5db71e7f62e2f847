# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads and changes what dkms knows of this package. dkms knows a version by the link `source`, which
# leads to the source with dkms.conf. dkms 3.0 ends each command with an error if this file is missing
# for one version of one package, and then builds no module for a new kernel, not even the NVIDIA
# driver. So each function here leaves only versions that dkms can read. kept.sh must be read before,
# and $source and $name be set.

# others VERSION: prints all versions that dkms lists, except VERSION.
others() {
	for link in "$tree"/*/source; do
		[ -L "$link" ] || continue
		other=${link%/source}
		other=${other##*/}
		[ "$other" = "$1" ] || printf '%s\n' "$other"
	done
}

# active VERSION: prints the "KVER/ARCH" of each kernel for which dkms has installed this version.
active() {
	for link in "$tree"/kernel-*; do
		[ -L "$link" ] || continue
		target=$(readlink "$link")
		[ "${target%%/*}" != "$1" ] || printf '%s\n' "${target#*/}"
	done
}

# link_of KVER/ARCH: prints the link by which dkms knows the installed version of a kernel.
link_of() { printf '%s\n' "$tree/kernel-${1%/*}-${1##*/}"; }

# active_on KVER: prints the version that dkms has installed for the kernel. Prints nothing if dkms
# has installed none.
active_on() {
	target=$(readlink "$tree/kernel-$1-$arch") || return 0
	printf '%s\n' "${target%%/*}"
}

# describe VERSION: reads a dkms.conf, and writes that of VERSION with the lines by which dkms finds
# the installed files.
describe() {
	mkdir -p "$tree/$1/old-source" && ln -sfn "$tree/$1/old-source" "$tree/$1/source" &&
		{
			echo "PACKAGE_VERSION=\"$1\""
			grep -E '^(PACKAGE_NAME|BUILT_MODULE_[A-Z]+|DEST_MODULE_[A-Z]+|NO_WEAK_MODULES)(\[|=)'
		} >"$tree/$1/old-source/dkms.conf"
}

# readable VERSION: makes dkms able to read a version whose source is gone, for example because the
# disk was full when the source should have been kept. The lines by which dkms finds the installed
# files are the same in each version.
readable() {
	[ -s "$tree/$1/source/dkms.conf" ] || describe "$1" <"$source/dkms.conf"
}

# forget VERSION: removes a version from dkms without dkms. The modules of kernels stay.
forget() {
	for build in $(active "$1"); do
		rm -f "$(link_of "$build")"
	done
	rm -rf "${tree:?}/${1:?}"
	[ ! -d "$tree" ] || rmdir --ignore-fail-on-non-empty "$tree"
}

# drop VERSION: removes a version from dkms, with the modules that dkms has installed from it. If
# dkms refuses, removes the same files without dkms.
drop() {
	if readable "$1" && dkms remove "$name/$1" --all </dev/null && [ ! -e "$tree/$1" ]; then return; fi
	for build in $(active "$1"); do
		of=${build%/*}
		[ ! -d "$modules/$of" ] || {
			rm -f "$modules/$of"/updates/dkms/nv_peer_mem*.ko*
			depmod "$of"
		}
	done
	forget "$1"
}

# keep VERSION: copies the source of VERSION, whose package the package manager is about to delete.
keep() {
	[ -L "$tree/$1/source" ] || return 0
	if [ -z "$(active "$1")" ]; then
		drop "$1"
	elif [ "$(readlink "$tree/$1/source")" != "$tree/$1/old-source" ]; then
		# An interrupted copy must not count as the source.
		rm -rf "$tree/$1/old-source" "$tree/$1/old-source.new" &&
			cp -a "$(readlink -f "$tree/$1/source")" "$tree/$1/old-source.new" && to_disk "$tree" &&
			mv "$tree/$1/old-source.new" "$tree/$1/old-source" &&
			ln -sfn "$tree/$1/old-source" "$tree/$1/source" && return
		rm -rf "$tree/$1/old-source.new"
		echo "nv_peer_mem: the source of version $1 cannot be copied to $tree$(no_room "$tree")." >&2
		return 1
	fi
}

# drop_others VERSION: removes the other versions from dkms, except for kernels that keep them.
drop_others() {
	for other in $(others "$1"); do
		for build in $(active "$other"); do
			[ -d "$modules/${build%/*}" ] || rm -f "$(link_of "$build")"
		done
		# dkms must not know a version whose source is about to be deleted.
		keep "$other" || forget "$other"
	done
}

# repair: makes each version that dkms lists readable for dkms. If there is no room for that, dkms
# forgets the version.
repair() {
	for broken in $(others ''); do
		readable "$broken" || forget "$broken"
	done
}

# dkms WORD...: runs dkms without the lock, which a program that dkms starts could otherwise keep.
dkms() {
	command dkms "$@" 9>&-
}

# lock SECONDS: waits until no other script of this package changes dkms or the modules, for example
# the hook for a new kernel, or the service at boot. Fails if that takes longer. The lock ends with
# the script. A script that dkms starts meanwhile counts as the one that has the lock. Only root may
# open the file, because whoever can open it can hold the lock. Without /run, as in some chroots, no
# boot or service interferes, so there is no lock.
lock() {
	[ -z "${NVPM_LOCKED-}" ] || return 0
	file=${NVPM_SYSROOT-}/run/nv_peer_mem.dkms
	if (umask 077 && : >>"$file" && chmod 600 "$file") 2>/dev/null && command -v flock >/dev/null; then
		exec 9>>"$file"
		flock -w "$1" 9 || {
			[ "$1" -eq 0 ] ||
				echo "nv_peer_mem: another script of this package is not done after $1 seconds (fuser $file shows it). When it has ended, try again." >&2
			return 1
		}
	fi
	export NVPM_LOCKED=yes
}

# recover: undoes what a power cut or a full disk has left.
recover() {
	put_back_lost
	repair
}

# complaints: prints the lines in which dkms says that it cannot read a version of this package.
complaints() {
	dkms status 2>&1 </dev/null | grep -F -e "$tree/" -e "$name/" | grep -e 'dkms\.conf' -e 'broken'
}
