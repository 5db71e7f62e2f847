# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Keeps copies of the module's files while dkms replaces them for a kernel. If dkms fails, or the
# power fails, the copies are put back, so that no kernel loses a module that worked. The copies are
# below /var/lib, which survives a boot. Only root can read or write their directory.

modules=${NVPM_SYSROOT-}/lib/modules
tree=${NVPM_SYSROOT-}/var/lib/dkms/nvidia-peer-memory
kept=${NVPM_SYSROOT-}/var/lib/nvidia-peer-memory
arch=$(uname -m)

# module_files KVER: prints the files of the module that the kernel has, relative to the kernel's
# directory. Files of the marker and the callback module belong to the module.
module_files() {
	(cd "$modules/$1" 2>/dev/null && find . -name nv_peer_mem.ko\* -o -name nv_peer_mem_callback.ko\* -o -name nv_peer_mem_marker.ko\*)
}

# has_module KVER: succeeds if the kernel has a file of the module that is not empty.
has_module() {
	find "$modules/$1/" -name nv_peer_mem.ko\* -size +0 2>/dev/null | grep -q .
}

# keep_files KVER: copies the module's files of this kernel, and notes the version that dkms has
# installed. Fails if there is no room for the copies. A copy that is not complete is never used,
# because its directory gets its name at the end. Without a module, an earlier copy stays.
keep_files() {
	has_module "$1" || return 0
	files=$(module_files "$1")
	(
		umask 077
		mkdir -p "$kept" && chmod 700 "$kept" && rm -rf "$kept/$1.new" && mkdir -p "$kept/$1.new/files" &&
			active_on "$1" >"$kept/$1.new/version" &&
			cd "$modules/$1" && printf '%s\n' "$files" | xargs -d '\n' cp -a --parents -t "$kept/$1.new/files" &&
			rm -rf "${kept:?}/$1" && mv "$kept/$1.new" "$kept/$1" && to_disk "$kept"
	)
}

# to_disk DIRECTORY: waits until the file system with the directory has stored all that was written.
# File systems store the names of files within seconds, and their contents up to half a minute later.
# A power cut in between leaves files of 0 bytes.
to_disk() {
	sync -f "$1" 2>/dev/null || sync
}

# are_whole KVER: succeeds if none of the copies is empty, as a power cut can leave it.
are_whole() {
	[ -z "$(find "$kept/$1/files" -type f -size 0)" ]
}

# put_back KVER: puts the kept files back into the kernel's directory, and tells dkms that the noted
# version is installed. Files of another version, which a full disk may have cut short, go first,
# because they may take the room, and because modprobe must not find them.
put_back() {
	[ -d "$modules/$1" ] || return 0
	module_files "$1" | (cd "$modules/$1" && xargs -r -d '\n' rm -f)
	[ -d "$kept/$1/files" ] || return 0
	cp -a "$kept/$1/files/." "$modules/$1/" || {
		# modprobe must not find a file that was cut short.
		module_files "$1" | (cd "$modules/$1" && xargs -r -d '\n' rm -f)
		echo "nv_peer_mem: the module of kernel $1 cannot be put back. Its files are kept in $kept/$1/files." >&2
		return 1
	}
	to_disk "$modules/$1"
	depmod "$1"
	to_disk "$modules/$1"
	version_before=$(cat "$kept/$1/version")
	build=$version_before/$1/$arch
	if [ "$version_before" ] && [ -d "$tree/$build/module" ]; then
		ln -sfn "$build" "$tree/kernel-$1-$arch"
	fi
	drop_copies "$1"
}

# unchanged KVER: succeeds if the kernel still has each file of which there is a copy.
unchanged() {
	(cd "$kept/$1/files" && find . -type f) | (
		while IFS= read -r file; do
			cmp -s "$kept/$1/files/$file" "$modules/$1/$file" || exit 1
		done
	)
}

# all_there KVER VERSION: succeeds if each file that was built is installed as a whole, and is not
# empty. Some versions of dkms report success although a full disk has cut a file short.
all_there() {
	for built in "$tree/$2/$1/$arch/module"/*.ko*; do
		find "$modules/$1/" -name "${built##*/}" -size +0 -exec cmp -s "$built" {} \; -print | grep -q . || return 1
	done
}

# replaced KVER: succeeds if dkms has installed all files of a version for the kernel.
replaced() {
	version_there=$(active_on "$1")
	[ "$version_there" ] && all_there "$1" "$version_there"
}

# put_back_lost: puts the files back of each kernel for which the power failed while dkms replaced
# them. A copy exists only meanwhile, so the kernel may have no file, or files of both versions.
# Drops the copies of removed kernels, copies that are not needed any more, and copies that a power
# cut has emptied.
put_back_lost() {
	for copy in "$kept"/*/files; do
		[ -d "$copy" ] || continue
		kernel_before=${copy%/files}
		kernel_before=${kernel_before##*/}
		if [ ! -d "$modules/$kernel_before" ] || ! are_whole "$kernel_before" ||
			unchanged "$kernel_before" || replaced "$kernel_before"; then
			drop_copies "$kernel_before"
		else
			put_back "$kernel_before"
		fi
	done
}

# drop_copies KVER: removes the copies of this kernel, and the directory if it is empty.
drop_copies() {
	rm -rf "${kept:?}/${1:?}"
	[ ! -d "$kept" ] || rmdir --ignore-fail-on-non-empty "$kept"
}
