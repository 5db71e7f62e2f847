# shellcheck shell=sh disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Contains the functions of ../rust-assembly for the product `module`. They compile the module's
# Rust, with the module's own kernel crate, to assembly that suits all kernels of an architecture.
# ../prebuilt.S includes the assembly.

program=nv_peer_mem
title="nv_peer_mem $version"
core_flags="--cfg no_fp_fmt_parse"

# print_sources: prints the version and the sources, for the checksum. bindings_generated.rs is left
# out, because only in-kernel builds use that file.
print_sources() {
	cd "$top/src" || exit
	echo "$version"
	find . -maxdepth 1 -name '*.rs' ! -name bindings_generated.rs | sort | xargs cat
	cat include/bindings.rs kernel/*.rs
}

# set_flags: sets the flags of rustc. Overflows panic, as in the kernel's own Rust. Frame pointers
# are kept, because some kernels unwind the stack by them. The code has every mitigation that any
# kernel of the architecture needs.
set_flags() {
	flags="-Cforce-frame-pointers=y -Cpanic=abort -Cforce-unwind-tables=n -Csymbol-mangling-version=v0 -Copt-level=2 -Cdebug-assertions=n
		-Coverflow-checks=y -Ccodegen-units=1 -Crelocation-model=static -Cembed-bitcode=y -Zfunction-sections=n
		--remap-path-prefix=$top/src=src --remap-path-prefix=$library=library"
	case $arch in
	x86_64) set_x86_flags ;;
	# The code must not use register x18, which kernels with a shadow call stack reserve.
	aarch64)
		flags="$flags --target=aarch64-unknown-none-softfloat -Zbranch-protection=bti,pac-ret"
		if at_least 108000; then flags="$flags -Ctarget-feature=-neon -Zfixed-x18"; else flags="$flags -Ctarget-feature=-neon,+reserve-x18"; fi
		;;
	esac
}

set_x86_flags() {
	features=-mmx,+soft-float,+retpoline-external-thunk,+retpoline-indirect-branches,+retpoline-indirect-calls
	x86_target "$features,+harden-sls-ijmp,+harden-sls-ret" >"$dir/target.json"
	flags="$flags --target=$dir/target.json -Ctarget-feature=-sse,-sse2,-sse3,-ssse3,-sse4.1,-sse4.2,-avx,-avx2
		-Ctarget-cpu=x86-64 -Ztune-cpu=generic -Cno-redzone=y -Ccode-model=kernel
		-Zfunction-return=thunk-extern -Zcf-protection=branch"
	if at_least 109300; then flags="$flags -Cjump-tables=n"; else flags="$flags -Zno-jump-tables"; fi
	! at_least 109500 || flags="$flags -Zunstable-options"
}

# x86_target FEATURES: prints the description of the target, with the same values as the kernel's
# scripts/generate_rust_target.rs.
x86_target() {
	abi='' width='"64"'
	! at_least 109100 || width=64
	! at_least 108600 || abi=x86-softfloat
	! at_least 109800 || abi=softfloat
	cat <<-JSON
		{
			"arch": "x86_64",
			"data-layout": "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
			"features": "$1",
			"llvm-target": "x86_64-linux-gnu",
			${abi:+"\"rustc-abi\": \"$abi\","}
			"target-pointer-width": $width,
			"emit-debug-gdb-scripts": false,
			"frame-pointer": "may-omit",
			"stack-probes": {"kind": "none"}
		}
	JSON
}

# compile_crates ASSEMBLY: compiles the kernel crate, and then the module's crate to ASSEMBLY. The
# module's crate is compiled as an archive, because some versions of rustc would otherwise leave out
# functions of the other crates. As in the kernel's own build, an option sets no_std.
compile_crates() {
	assembly=$1
	run --edition=2021 -Cmetadata=nv_peer_mem --crate-name kernel --crate-type rlib \
		--emit="link=$dir/libkernel.rlib" "$top/src/kernel/lib.rs"
	set -- -Zcrate-attr=no_std
	at_least 108200 || set -- "$@" '-Zcrate-attr=feature(raw_ref_op)'
	run --edition=2021 "$@" --cfg nvpm_own_crate -Cmetadata=nv_peer_mem --crate-name nv_peer_mem --crate-type staticlib \
		--extern "kernel=$dir/libkernel.rlib" -Clto=fat --emit="link=$dir/nv_peer_mem.a,asm=$assembly" "$top/src/main.rs"
	check_names "$assembly"
}

# check_names ASSEMBLY: ends with an error if ASSEMBLY uses a mangled Rust name, but does not define
# this name. The module loader would otherwise look for the name in the running kernel's own crates.
check_names() {
	sed -n 's/^\(_R[[:alnum:]_]*\).*:$/\1/p; s/^[[:blank:]]*\.comm[[:blank:]]\(_R[[:alnum:]_]*\)[^,]*,.*/\1/p' "$1" |
		sort -u >"$dir/defined"
	foreign=$(grep -ow '_R[[:alnum:]_]*' "$1" | sort -u | comm -23 - "$dir/defined")
	[ -z "$foreign" ] || die "rustc has left out names that the module uses: $foreign"
}

# adapt: makes returns patchable, through the macro nvpm_return of ../prebuilt.S. Also removes @PLT,
# so that calls are direct. Assemblers before 2.37 would turn @PLT into a reference to a name that
# old kernels lack.
adapt() { sed -e 's/^\tjmp\t__x86_return_thunk$/\tnvpm_return/' -e '/^\t\(call\|jmp\)/s/@PLT//' | padded; }

# padded: on x86-64, puts 16 bytes of nop before each function, because kernels with
# CONFIG_CALL_PADDING write code into these bytes. rustc has an option for this padding only since
# 1.81.
padded() {
	[ "$arch" = x86_64 ] || exec cat
	awk '
		/^\t\.type\t.*,@function$/ { name = $2; sub(/,@function$/, ":", name) }
		name && $0 == name { print "\t.skip\t16, 0x90"; name = "" }
		{ print }'
}
