# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Builds the module for one kernel, and replaces the module that the kernel has. The old module stays
# in place until the new one is compiled. If the new one cannot be installed, the old one is put
# back. kept.sh and known.sh must be read before, and $source, $name and $version be set.

log=$tree/$version/build/make.log

# replace_on KVER: builds and installs $version. If this fails, sets $why to the cause, and $compiled
# to `no` if a part is missing, so that a build was not even tried.
replace_on() {
	compiled=no
	! installed "$1" || return 0
	why=$(KVER=$1 sh "$source/build/configure" --check 2>&1 </dev/null) || {
		why=${why#nv_peer_mem: }
		return 1
	}
	compiled=yes
	log_before=$(log_state)
	unbuild "$1"
	dkms build "$name/$version" -k "$1/$arch" </dev/null || {
		why=$(why_not_compiled)
		return 1
	}
	keep_files "$1" || {
		why="the module that this kernel has cannot be copied to $kept$(no_room "${kept%/*}")."
		return 1
	}
	if swap "$1"; then
		to_disk "$tree"
		to_disk "$modules/$1"
		drop_copies "$1"
		return 0
	fi
	why="dkms has not installed the files; the lines above say why$(no_room "$modules/$1")."
	# dkms may count files as installed that are cut short.
	[ "$(active_on "$1")" != "$version" ] || dkms uninstall "$name/$version" -k "$1/$arch" </dev/null ||
		rm -f "$tree/kernel-$1-$arch"
	put_back "$1"
	unbuild "$1"
	return 1
}

# unbuild KVER: removes an earlier build of $version for the kernel, which may be for another RDMA
# core or driver than there is now, or may be cut short. dkms would install such a build.
unbuild() {
	rm -rf "${tree:?}/$version/${1:?}/$arch"
	[ ! -d "$tree/$version/$1" ] || rmdir --ignore-fail-on-non-empty "$tree/$version/$1"
}

# swap KVER: removes the version that dkms has installed, and installs $version. With --force, dkms
# also installs a version that is not higher than the files that are there.
swap() {
	old=$(active_on "$1")
	# The files are replaced in any case, so dkms only has to lose the link if it cannot uninstall.
	[ -z "$old" ] || { readable "$old" && dkms uninstall "$name/$old" -k "$1/$arch" </dev/null; } ||
		rm -f "$tree/kernel-$1-$arch"
	dkms install --force "$name/$version" -k "$1/$arch" </dev/null && all_there "$1" "$version"
}

# installed KVER: succeeds if dkms has installed $version for exactly this kernel, and the kernel has
# these files. `dkms autoinstall` counts files of another build of the same version as its own.
installed() {
	[ "$(active_on "$1")" = "$version" ] && has_module "$1" && all_there "$1" "$version"
}

log_state() { stat -c '%i %s %y' "$log" 2>/dev/null; }

# no_room DIRECTORY: prints a remark if the disk with the directory is full, or nothing.
no_room() {
	free=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
	[ "${free:-1024}" -ge 1024 ] || printf ' (the disk of %s is full)' "$1"
}

# why_not_compiled: prints a line of dkms' log that explains why the module was not compiled. This
# is the line with which our build ended, because it names the remedy. Without such a line, it is
# the first error of a compiler, or else the line where make ended. A log of an earlier build says
# nothing. Without a line, the function says what it sees of the disk, and otherwise refers to the
# lines above.
why_not_compiled() {
	line=
	if [ "$(log_state)" != "$log_before" ]; then
		# These lines of our build only tell what the build does, so they explain no failure.
		line=$(grep '^nv_peer_mem: ' "$log" 2>/dev/null |
			grep -v -e '^nv_peer_mem: compiling ' -e '^nv_peer_mem: warning: ' \
				-e '^nv_peer_mem: the in-kernel build ' | tail -n 1)
		for pattern in 'No space left on device' '(^|[ :])(fatal )?error(\[E[0-9]*\])?: ' '\*\*\* '; do
			[ -z "$line" ] || break
			line=$(grep -E -m 1 -e "$pattern" "$log" 2>/dev/null)
		done
	fi
	if [ "$line" ]; then
		echo "${line#nv_peer_mem: } (the whole log: $log)"
	elif [ ! -w "$tree" ]; then
		echo "$tree cannot be written: is its disk mounted read-only?"
	else
		echo "dkms has failed; the lines above say why$(no_room "$tree")."
	fi
}

# say_why KVER: prints that $version is not built for the kernel, why, which module the kernel has
# now, and the command that tries again. The function looks at the files for this. The command is
# not `dkms autoinstall`, which would count a kept file of the same version as the new one.
say_why() {
	echo "nv_peer_mem is not built for kernel $1: $why"
	if has_module "$1"; then
		echo "Kernel $1 keeps its module of version $(version_of "$1"). When the cause is removed, run: $source/build/dkms/kernel $1"
	else
		echo "This kernel is skipped. When the cause is removed, run: $source/build/dkms/kernel $1"
	fi
}

# version_of KVER: prints the version of the module that the kernel has.
version_of() {
	file=$(find "$modules/$1/" -name nv_peer_mem.ko\* -size +0 | head -n 1)
	modinfo -F version "$file" 2>/dev/null || echo unknown
}
