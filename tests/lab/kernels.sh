# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The table of kernels, and what the archive has of each.

kernel_table() { grep -v '^#' "$lab/kernels"; }

# machine_suites: all suites that kernels come from.
machine_suites() { kernel_table | awk '{ print $3 }' | sort -u; }

# choose_machine NAME: its line, in $machine, $kwant, $ksuite, $kpackages,
# $kcompiler, $kground, $kdriver, $krelease, $machine_is and $kflavour.
choose_machine() {
	# shellcheck disable=SC2034 # for the layers and the guest
	read -r machine kwant ksuite kpackages kcompiler kground kdriver krelease machine_is kflavour \
		< <(kernel_table | awk -v name="$1" '$1 == name') ||
		die "there is no machine '$1', only: $(kernel_table | awk '{ print $1 }' | paste -sd' ')."
}

# bootable_kernels: "release version series" of each kernel that has image,
# headers and source of the same version, oldest first.
bootable_kernels() {
	local name version release series
	while IFS='|' read -r name version; do
		release=${name#linux-image-}
		case $release in
		*-cloud-amd64 | *-rt-amd64) continue ;;
		[0-9]*-amd64) ;;
		*) continue ;;
		esac
		series=$(printf '%s' "$release" | cut -d. -f1,2)
		has "linux-headers-$release" "$version" || continue
		has "linux-source-$series" "$version" || continue
		printf '%s %s %s\n' "$release" "$version" "$series"
	done <"$archive" | sort -V
}

# choose_kernel: sets $kver (release), $kpkg (package version) and $kseries for the
# machine's line, or for $kernel_instead; LAB_KERNEL, a release or a series, takes the
# place of "7".
choose_kernel() {
	local kernels want=${kernel_instead:-$kwant}
	[ "$want" != 7 ] || want=${LAB_KERNEL:-7}
	kernels=$(bootable_kernels)
	read -r kver kpkg kseries < <(awk -v want="$want" '
		$1 == want || index($1, want ".") == 1 || index($1, want "+") == 1' <<<"$kernels" | tail -n 1) ||
		die "the archive has no kernel '$want' with image, headers and source of one version. It has: $(cut -d' ' -f1 <<<"$kernels" | paste -sd' '). Choose one with LAB_KERNEL=, or look again with tests/run update."
	kernel_table | awk '{ print $2 }' | grep -qxF -e "$kwant" -e "$kseries" ||
		say kernel "$kver is in no line of tests/lab/kernels: trying."
}

# newest_driver BRANCH: the version of Debian's package of NVIDIA's proprietary driver.
newest_driver() {
	local version
	version=$(sed -n "s/^nvidia-kernel-dkms|\($1\.\)/\1/p" "$archive" | tail -n 1)
	[ "$version" ] || die "the archive has no nvidia-kernel-dkms $1: choose another branch in tests/lab/kernels, or look again with tests/run update."
	printf '%s\n' "$version"
}

# older_kernel: the one before $kver.
older_kernel() { bootable_kernels | awk -v newer="$kver" '$1 == newer { exit } { older = $1 } END { print older }'; }
