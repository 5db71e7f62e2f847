# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Chooses the way to compile the module's Rust (docs/building.md):
#   in-kernel  compiles against the kernel's own crates. Needs Linux 6.12, the metadata of the
#              crates, the rustc that compiled the crates, bindgen, and a driver that is not
#              proprietary
#   prebuilt   assembles build/prebuilt/ARCHITECTURE.S, which contains a small kernel crate of the
#              module's own. A release contains the file; a checkout compiles it with any rustc
#              that find/oldest.sh allows

choose_rust() {
	assemble=
	case ${NVPM_RUST:-} in
	in-kernel | prebuilt)
		if [ "$NVPM_RUST" = in-kernel ]; then can_in_kernel; else can_prebuilt; fi ||
			die "NVPM_RUST=$NVPM_RUST is not possible: $why."
		found Rust "$NVPM_RUST, as chosen"
		;;
	'') first_possible_way ;;
	*) die "NVPM_RUST=$NVPM_RUST is not known: in-kernel or prebuilt." ;;
	esac
	[ "$NVPM_RUST" != in-kernel ] || KDIR=$crates RUSTC=$kernel_rustc BINDGEN=$kernel_bindgen
	found KDIR "$KDIR (kernel $KVER)"
}

first_possible_way() {
	if can_in_kernel; then
		NVPM_RUST=in-kernel
		found Rust "in-kernel: the kernel's own crates"
		return
	fi
	not_kernel=$why
	! checks_calls || die "$why, so only an in-kernel build is possible, but $not_kernel."
	can_prebuilt ||
		die "the module's Rust can be compiled in neither way. in-kernel: $not_kernel. prebuilt: $why."
	NVPM_RUST=prebuilt
	if [ "$assemble" ]; then
		found Rust "prebuilt: compiled here first, by $RUSTC, because $not_kernel"
	else
		found Rust "prebuilt: compiled for the release, because $not_kernel"
	fi
}

# can_WAY: succeeds if the Rust can be compiled in this way. Otherwise sets $why to the reason, and
# fails.
can_in_kernel() {
	why=
	if [ "$(config_value CONFIG_RUST)" != y ]; then
		why="kernel $KVER was built without CONFIG_RUST"
	elif older_than "$oldest_crates"; then
		why="kernel $release is older than $oldest_crates, the oldest whose Rust crates have what this module uses"
	elif [ "$proprietary" ]; then
		why="the NVIDIA driver is the proprietary one, and the kernel denies its symbols to modules that use the kernel's crates"
	elif ! find_crates; then
		why="the headers of kernel $KVER lack the Rust metadata${metadata_advice:+ ($metadata_advice)}"
	elif ! choose_bindgen; then
		why="${BINDGEN:-bindgen} is missing (package bindgen${bindgen_version:+ or bindgen-$bindgen_version}, on Fedora bindgen-cli)"
	elif ! choose_rustc; then
		why="${RUSTC:-rustc} is missing${rustc_version:+ (package rustc or rustc-$rustc_version)}"
	else
		have=$("$kernel_rustc" --version)
		[ -z "$want" ] || [ "$want" = "$have" ] ||
			why="kernel $KVER was built with '$want', but $kernel_rustc here is '$have'"
	fi
	[ -z "$why" ]
}

# find_crates: sets $crates to the tree with the metadata of the kernel's crates. Fails if no tree
# has the metadata. If the user has chosen KDIR, only that tree is searched.
find_crates() {
	for crates in "$KDIR" ${metadata_dir:+"$metadata_dir"}; do
		[ ! -e "$crates/rust/libkernel.rmeta" ] || return 0
		[ -z "$chosen_tree" ] || break
	done
	return 1
}

# choose_bindgen: sets $kernel_bindgen to the user's BINDGEN, or to an installed bindgen. It prefers
# the version of bindgen in the kernel's configuration. Fails if no bindgen is installed.
choose_bindgen() {
	bindgen_version=$(config_value CONFIG_BINDGEN_VERSION_TEXT | sed -n 's/^bindgen \([0-9]*\.[0-9]*\).*/\1/p')
	for kernel_bindgen in ${BINDGEN:-$(ubuntu_versions bindgen "$bindgen_version") bindgen}; do
		! command -v "$kernel_bindgen" >/dev/null || return 0
	done
	return 1
}

# choose_rustc: sets $kernel_rustc to the user's RUSTC, or to an installed rustc. It prefers a rustc
# that prints the same version as the kernel's compiler, $want. Fails if no rustc is installed.
choose_rustc() {
	want=$(config_value CONFIG_RUSTC_VERSION_TEXT)
	rustc_version=$(printf '%s\n' "$want" | sed -n 's/^rustc \([0-9]*\.[0-9]*\).*/\1/p')
	kernel_rustc=
	for rustc in ${RUSTC:-rustc $(ubuntu_versions rustc "$rustc_version")}; do
		command -v "$rustc" >/dev/null || continue
		kernel_rustc=${kernel_rustc:-$rustc}
		if [ -n "$want" ] && [ "$want" = "$("$rustc" --version)" ]; then
			kernel_rustc=$rustc
			break
		fi
	done
	[ -n "$kernel_rustc" ]
}

# can_prebuilt: works like can_in_kernel. If rustc has to compile the assembly first, also sets
# $assemble to the name of the assembly.
can_prebuilt() {
	! checks_calls || return 1
	assembly=$(uname -m).S
	! is_current "$here/prebuilt/$assembly" || return 0
	if compiler=$(sh "$here/find/rustc"); then
		eval "$compiler"
		assemble=$assembly
		return
	fi
	why="build/prebuilt/$assembly$unsuitable; and to make it, $compiler"
	return 1
}

# is_current ASSEMBLY: succeeds if the file was compiled from the sources here. Otherwise sets
# $unsuitable to the difference, and fails. If there are no sources, any file is accepted, because
# the preinst of the Debian package calls this function before the sources are unpacked.
is_current() {
	if [ -e "$1" ] && [ ! -e "$top/src/main.rs" ]; then return 0; fi
	unsuitable=$(sh "$here/rust-assembly" module --is-current "$1")
}

# checks_calls: succeeds, and sets $why, if the kernel checks the type of indirect calls. Such a
# kernel cannot use the code in build/prebuilt, which lacks the data for this check.
checks_calls() {
	[ "$(config_value CONFIG_CFI)$(config_value CONFIG_CFI_CLANG)" = y ] || return 1
	why="kernel $KVER checks the type of indirect calls (CONFIG_CFI)"
}
