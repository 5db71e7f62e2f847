# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Contains the functions of ../rust-assembly for the product `preload`, the preloaded library. They
# compile the library to assembly, from which cc makes the library. In rust.build, they also make an
# object with the same code and an empty object, because preload/link needs both objects.

program=nvpm_preload
title="libnvpm_preload.so"
core_flags=

print_sources() { cat "$top"/preload/src/*.rs; }

# set_flags: sets the same flags as preload/Cargo.toml and preload/.cargo/config.toml.
set_flags() {
	flags="--target=$arch-unknown-linux-gnu -Copt-level=3 -Cpanic=abort -Cforce-unwind-tables=y -Cdebug-assertions=n -Ccodegen-units=1
		-Csymbol-mangling-version=v0 -Crelocation-model=pic -Cembed-bitcode=y
		--remap-path-prefix=$top/preload=preload --remap-path-prefix=$library=library"
}

# compile_crates ASSEMBLY: compiles the crate to ASSEMBLY. Also compiles it to an archive and to an
# object for preload/link.
compile_crates() {
	assembly=$1
	set --
	at_least 108200 || set -- "$@" '-Zcrate-attr=feature(raw_ref_op)'
	at_least 108100 || set -- "$@" '-Zcrate-attr=feature(lint_reasons)'
	at_least 107900 || set -- "$@" '-Zcrate-attr=feature(inline_const)'
	# Without the archive, some versions of rustc would leave out functions of core that the
	# library uses.
	run --edition=2021 "$@" -Cmetadata=nvpm_preload --crate-name nvpm_preload --crate-type staticlib -Clto=fat \
		--emit="link=$dir/nvpm_preload.a,obj=$dir/nvpm_preload.o,asm=$assembly" "$top/preload/src/lib.rs"
}

adapt() { cat; }
