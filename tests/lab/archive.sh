# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The Debian archive: which mirror, and which kernels it offers today.

# The release whose programs most guests run (kernels has the others).
LAB_RELEASE=trixie

# The mirror: LAB_MIRROR, or the one this machine's own apt uses for Debian.
find_mirror() {
	# shellcheck disable=SC2016 # apt's own variables
	local format='$(ORIGIN)|$(LABEL)|$(REPO_URI)'
	mirror=${LAB_MIRROR:-}
	[ -n "$mirror" ] || mirror=$(apt-get indextargets --format "$format" 'Created-By: Packages' 2>/dev/null |
		sed -n 's/^Debian|Debian|//p' | head -n 1)
	if [ -z "$mirror" ]; then
		apt-get update >"$LAB_CACHE/log/apt-update.log" 2>&1 || true
		mirror=$(apt-get indextargets --format "$format" 'Created-By: Packages' |
			sed -n 's/^Debian|Debian|//p' | head -n 1)
	fi
	[ -n "$mirror" ] ||
		die "apt on this machine knows no Debian mirror: give one with LAB_MIRROR=URL."
	mirror=${mirror%/}
}

# write_sources DIR [RELEASE]: DIR/sources.list for apt, of a mirror that answers: a
# clear sentence before any long step if it does not. RELEASE has its own packages, and
# LAB_RELEASE the kernels of all others beside them.
write_sources() {
	local release=${2:-$LAB_RELEASE}
	find_mirror
	/usr/lib/apt/apt-helper download-file "$mirror/dists/$release/Release" \
		"$1/probe" >/dev/null 2>&1 ||
		die "the Debian mirror $mirror cannot be reached, and the cache in $LAB_CACHE lacks what this needs: check the network, or set LAB_MIRROR=URL."
	# An old suite may have left the archive: its kernels are missing then, no others.
	local suite
	for suite in $({ printf '%s\n' "$release" && { [ "$release" != "$LAB_RELEASE" ] || machine_suites; }; } | sort -u); do
		! /usr/lib/apt/apt-helper download-file "$mirror/dists/$suite/Release" "$1/probe" >/dev/null 2>&1 ||
			printf 'deb %s %s main contrib non-free\n' "$mirror" "$suite"
	done >"$1/sources.list"
}

# Kernels and drivers of the archive as "name|version" lines, in $archive.
# Kept until `tests/run update`: a lab that works is not disturbed by news.
list_archive() {
	local base=$1 dir
	archive=$LAB_CACHE/archive-nvidia+$(machine_suites | paste -sd+)
	[ ! -e "$archive" ] || return 0
	new_dir archive
	dir=$reply
	write_sources "$dir"
	mkdir "$dir/out"
	say archive "listing the kernels and drivers that $mirror offers"
	local binds=("$dir/sources.list:/etc/apt/sources.list:ro" "$dir/out:/out")
	# shellcheck disable=SC2016 # for the shell inside
	logged "$LAB_CACHE/log/archive.log" in_layers "$base" "$dir" bash -euc '
			apt-get update
			apt-cache madison $(apt-cache pkgnames | grep -E "^linux-(image|headers|source)-[0-9]|^nvidia-kernel-dkms\$") |
				tr -d " " | cut -d"|" -f1,2 | LC_ALL=C sort -uV >/out/list' ||
		die "the archive could not be listed."
	mv "$dir/out/list" "$archive"
	rm -rf "$dir"
}

# has PACKAGE VERSION: whether the archive has it.
has() {
	grep -qxF "$1|$2" "$archive"
}
