# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module, and the lab's own modules where they apply, built against every
# kernel series whose source Debian has. Compiling only: nothing is booted.

# series_of_archive: "series version" of the newest source of each series.
series_of_archive() {
	sed -n 's/^linux-source-\([0-9.]*\)|\(.*\)$/\1 \2/p' "$archive" | sort -V |
		awk '{ newest[$1] = $2 } END { for (series in newest) print series, newest[series] }' | sort -V
}

# release_of_series SERIES VERSION: the release whose headers have this version.
release_of_series() {
	sed -n "s/^linux-headers-\($1[.0-9]*+deb[0-9]*-amd64\)|$2\$/\1/p" "$archive" | head -n 1
}

# matrix_series SERIES VERSION: builds in layers of their own, kept like all: each
# line says when it was built.
matrix_series() {
	local series=$1 version=$2 release tree
	release=$(release_of_series "$series" "$version")
	if [ "$version" = "$kpkg" ]; then
		stack=$guest_stack
		tree=/usr/src/linux-rust-$kver
	else
		layer_network=yes
		layer_args=("$series" "$version" "$release")
		layer tree "$base" "kernel tree of $series ($version), two minutes" "$top/debian/rust-metadata"
		stack=$reply:$base
		tree=/usr/src/matrix
	fi
	layer_network=
	layer_args=("$series" "$release" "$tree")
	layer matrix "$stack" "modules for $series" "${module_sources[@]}" "$lab/nvidia" "$lab/ofed" "$nvsource"
	cat "$LAB_CACHE/layers/$reply/root/matrix"
}

matrix_main() {
	local base guest_stack nvsource series version found rc=0 table=$LAB_CACHE/log/matrix
	guest_layers
	guest_stack=$stack
	base=$(tr : '\n' <<<"$stack" | grep '^base-')
	nvsource=$(echo "$LAB_CACHE/layers/$(tr : '\n' <<<"$stack" | grep '^nvsource-')"/root/usr/src/nvidia-*)
	found=$(series_of_archive)
	[ "$found" ] || die "the archive has no kernel source: tests/run update looks again."
	: >"$table"
	while read -r series version; do
		(matrix_series "$series" "$version") | tee -a "$table" || rc=1
	done <<<"$found"
	printf '\n  %-8s %-32s %-22s %s\n' kernel module result 'built (UTC)'
	sed -n 's/^result //p' "$table" | awk -F'|' '{ printf "  %-8s %-32s %-22s %s\n", $1, $2, $3, $4 }'
	[ "$rc" -eq 0 ] || die "not every series compiles: see above."
}
