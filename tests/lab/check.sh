# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# Static checks, with the guest's own tools: formatting, lints, style.

CHECKS=(rustfmt clippy kunit_clippy gpuverbs_lint cuda_lint bench_program shell checkpatch
	version generations ready bindings build_messages fallback status selftest defects_table jobs_table harness)

# check_layers NAME: which layers a check runs in: the base alone, the crates of the tests
# on the host or those of the bench beside it, the assembly of a release, all that a
# guest boots with, or that with the debug kernel, or with programs for CUDA, too.
check_layers() {
	case $1 in
	bench_program) echo bench ;;
	clippy | checkpatch | generations | bindings | build_messages | fallback) echo guest ;;
	ready) echo ready ;;
	kunit_clippy) echo debug ;;
	selftest) echo programs ;;
	*) echo base ;;
	esac
}

# choose_stack LAYERS: leaves them in $stack, made where they are missing.
choose_stack() {
	kver='' kseries=''
	case $1 in
	base) base_layer ;;
	host)
		hosttools_layer
		stack=$host_stack
		;;
	bench)
		bench_layer
		stack=$benchtools_stack
		;;
	ready)
		base_layer
		ready_layer
		stack=$ready:$base
		;;
	guest | debug) guest_layers ;;
	programs) guest_layers stock programs ;;
	esac
}

# in_copy NAME COMMAND: runs a shell command in the root file system of $stack, in a
# copy of the checkout that it may litter. In the copy the array `binds` may have
# put there, files get new times where their contents change, and only there.
in_copy() {
	local scratch rc=0
	new_dir tmp "$1"
	scratch=$reply
	local binds=("${binds[@]}" "$top:/checkout:ro")
	in_layers "$stack" "$scratch" bash -euo pipefail -c "
		mkdir -p /tmp/copy
		rsync --recursive --links --perms --checksum --delete --exclude=.git --exclude=target /checkout/ /tmp/copy/
		cd /tmp/copy
		kver=$kver series=$kseries
		$2" || rc=$?
	rm -rf "$scratch"
	return "$rc"
}

# in_kept_copy NAME COMMAND: the same in a copy that stays, with what cargo has
# compiled in it, so that the next time only what has changed is compiled. Cargo goes
# by times: those of checkouts, which may share the cache, would deceive it. The name
# has the stack's hash, for cargo does not look at what the system has installed.
in_kept_copy() {
	local dir using rc=0
	dir=$LAB_CACHE/cargo/$1-$(sha256sum <<<"$stack" | cut -c 1-12)
	mkdir -p "$dir/copy"
	exec {using}>"$dir/lock"
	flock "$using"
	touch "$dir"
	find "$LAB_CACHE/cargo" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +
	local binds=("$dir/copy:/tmp/copy")
	in_copy "$1" "$2" || rc=$?
	exec {using}>&-
	return "$rc"
}

check_rustfmt() {
	in_copy rustfmt '
		rustfmt --check src/main.rs
		for crate in tests/host tests/guest/gpuverbs tests/lab/cuda/driver tests/lab/cuda/runtime examples/rust; do
			(cd "$crate" && cargo fmt --check)
		done'
}

# The kernel's own lints: a warning is a failure. What was compiled before would not
# be warned of again.
check_clippy() {
	in_copy clippy '
		make clippy KVER="$kver" 2>&1 | tee /tmp/log
		if grep -E "^(warning|error)" /tmp/log; then exit 1; fi'
}

# The module's tests in the kernel are compiled for the debug kernel alone.
check_kunit_clippy() {
	local unpack='xz -dcf "$(modinfo -k "$kver" -n nv_peer_mem)" >/tmp/module'
	in_copy no-kunit "$unpack; if grep -a kunit /tmp/module; then exit 1; fi" || return 1
	guest_layers debug
	in_copy kunit "$unpack; grep -qa kunit /tmp/module" && check_clippy
}

check_gpuverbs_lint() {
	in_kept_copy gpuverbs_lint '
		cd tests/guest/gpuverbs
		cargo clippy --offline --all-targets -- -D warnings'
}

# And the tests of those parts of it that need no GPU.
check_cuda_lint() {
	in_kept_copy cuda_lint '
		for crate in tests/lab/cuda/driver tests/lab/cuda/runtime examples/rust; do
			(cd "$crate" && cargo clippy --offline --all-targets -- -D warnings)
		done
		cd tests/lab/cuda/driver
		cargo test --offline'
}

# What reports measurements, with the crates that it depends on.
check_bench_program() {
	in_kept_copy bench_program '
		export CARGO_TARGET_DIR=/tmp/copy/target
		[ -d target ] || cp -a /var/cache/bench-target target
		cd tests/bench
		rm -f Cargo.lock
		cargo fmt --check
		cargo clippy --all-targets -- -D warnings
		cargo test'
}

# Every file that says of itself that it is for the shell, or has its suffix.
check_shell() {
	in_copy shell '
		shell="^(#!.*[/ ](ba|da)?sh( |$)|# shellcheck shell=)"
		{
			find . -name target -prune -o -type f -name "*.sh" -print
			grep -rlIE --exclude-dir=target "$shell" .
		} | sort -u >/tmp/files
		# Parts of one program: what one sets another uses, and in the service calls.
		service="^\./init\.d/"
		parts="^\./tests/(status/|selftest/|packages/|guest/|lab/lab$|lab/[^/]*\.sh$)"
		grep -E "$service" /tmp/files | xargs shellcheck -e SC1091,SC2034,SC2154,SC2317
		grep -E "$parts" /tmp/files | xargs shellcheck -e SC1091,SC2034,SC2154
		grep -vE "$service|$parts" /tmp/files | xargs shellcheck'
}

check_checkpatch() {
	in_copy checkpatch '
		# What older kernels lack is in files of its own; the lab takes macros over as they
		# are. And there is no list of licences that are none of the kernel.
		passed_over() {
			case $1 in
			src/compat.h) echo --ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON ;;
			tests/lab/compat.h) echo --ignore LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED,SPACING,NEW_TYPEDEFS,COMPLEX_MACRO,CONST_STRUCT ;;
			tests/lab/nvidia/closed.c) echo --ignore MODULE_LICENSE ;;
			esac
		}
		# The names of CUDA are not the style of the kernel.
		for file in $(find src examples tests/lab tests/selftest tests/guest/defects tests/guest/clients tests/guest/hosts \
			-path tests/lab/cuda/include -prune -o -name "*.[ch]" -print); do
			perl "/usr/src/linux-lab-$series/scripts/checkpatch.pl" --no-tree --no-summary -q --terse $(passed_over "$file") -f "$file"
		done'
}

# The version stands in one place; what must repeat it agrees. Of the module
# `generations` asks.
check_version() {
	in_copy version '
		version=$(sed -n "s/^PACKAGE_VERSION=\"\(.*\)\"$/\1/p" dkms.conf)
		[ -n "$version" ]
		head -n 1 debian/changelog | grep -F "nvidia-peer-memory ($version-"'
}

# What the service says of machines that are made of files.
check_status() {
	in_copy status tests/status/run
}

# What selftest says of libraries that are doubles, with all of Python and the header.
check_selftest() {
	in_copy selftest tests/selftest/run
}

check_defects_table() {
	in_copy defects_table tests/lab/defects_table
}

# The simulated driver and the module, compiled with nv-p2p.h of each generation;
# layout.c says where each must have its fields, the module's own header too. And the
# module has the version of dkms.conf.
check_generations() {
	in_copy generations '
		double=tests/lab/nvidia
		version=$(sed -n "s/^PACKAGE_VERSION=\"\(.*\)\"$/\1/p" dkms.conf)
		for headers in "$double"/generations/[0-9]*; do
			make -C "/lib/modules/$kver/build" M="$PWD/$double" NV_SRC="$PWD/$headers" modules
			cp "$double/Module.symvers" "$headers/"
			make KVER="$kver" NV_SRC="$headers"
			[ "$(modinfo -F version nv_peer_mem.ko)" = "$version" ]
			nm nv_peer_mem.ko | grep " U nvidia_p2p_" >"/tmp/uses-$(basename "$headers")"
		done
		grep cap_persistent_pages /tmp/uses-515
		if grep cap_persistent_pages /tmp/uses-535; then exit 1; fi
		grep get_pages_persistent /tmp/uses-535
		make -C "/lib/modules/$kver/build" M="$PWD/$double" NV_SRC="$PWD/src/abi/nvidia" layout.o'
}

# The assembly of a release is the same byte for byte wherever it is made, and says
# nothing of where that was. It fits kernels without return thunks, too, which none here
# is, and refuses those that it cannot serve. On arm64 it leaves register 18 alone, which
# points to the shadow stack of kernels that have one.
check_ready() {
	in_copy ready '
		for arch in x86_64 aarch64; do NVPM_ARCH=$arch make ready; done
		cmp src/ready/x86_64.S /ready/x86_64.S
		mkdir -p /tmp/another/place
		cp -a Kbuild Makefile dkms.conf src /tmp/another/place/
		mv src/ready /tmp/first
		rm -r /tmp/another/place/src/ready
		NVPM_ARCH=aarch64 make -C /tmp/another/place ready
		cmp /tmp/first/aarch64.S /tmp/another/place/src/ready/aarch64.S
		mv /tmp/first src/ready
		if grep -nE "/(tmp|usr|root|home|build|checkout)/" src/ready/*.S; then exit 1; fi
		grep -qE "\b[wx]17\b" src/ready/aarch64.S
		if grep -nE "\b[wx]18\b" src/ready/aarch64.S; then exit 1; fi

		# assembled NAME WORD...: for a kernel so configured; its instructions in /tmp/NAME.
		assembled() {
			gcc-14 -c -DCONFIG_X86_64 "${@:2}" -o /tmp/ready.o src/rt/ready.S || return 1
			objdump -d --no-show-raw-insn /tmp/ready.o | awk -F: "{ print \$2 }" | awk "{ print \$1 }" >"/tmp/$1"
		}
		assembled thunks -DCONFIG_RETPOLINE -DCONFIG_RETHUNK
		if grep -x ret /tmp/thunks; then exit 1; fi
		assembled plain -DCONFIG_MITIGATION_RETPOLINE
		returns=$(grep -cx ret /tmp/plain)
		[ "$returns" -gt 20 ]
		[ "$(grep -x -A 1 ret /tmp/plain | grep -cx int3)" = "$returns" ]
		refused() { if assembled refused "${@:2}" 2>/tmp/said; then exit 1; fi; grep "#error \"this kernel $1" /tmp/said; }
		refused "has no retpolines"
		refused "checks indirect calls" -DCONFIG_RETPOLINE -DCONFIG_CFI
		refused "checks indirect calls" -DCONFIG_RETPOLINE -DCONFIG_CFI_CLANG'
}

# What Rust knows of C without bindgen is what bindgen makes of the headers.
check_bindings() {
	in_copy bindings '
		cp src/abi/bindings.rs /tmp/before
		make bindings KVER="$kver"
		diff -u /tmp/before src/abi/bindings.rs'
}

# Which ground a build takes, and why; what it lacks is named, with what to install.
check_build_messages() {
	in_copy build_messages 'tests/lab/build_messages "$kver"'
}

# The kernel's crates are not what the module expects: it is built all the same.
check_fallback() {
	in_copy fallback 'tests/lab/fallback "$kver"'
}

# reported NAME COMMAND...: one line when COMMAND succeeds, its output when not.
# Tests that cargo ran are counted; where it found none something is wrong.
reported() {
	local name=$1 log=$LAB_CACHE/log/$1.log tests
	shift
	if "$@" >"$log" 2>&1 &&
		tests=$(awk '/^test result:/ { found = 1; n += $4 } END { if (n) print ", " n " tests"; exit found && !n }' "$log"); then
		say "$name" "passed$tests"
	else
		tail -n 60 "$log" >&2
		say "$name" "FAILED; whole output: $log"
		return 1
	fi
}

# In a shell of its own: what one check chooses, a machine for example, is not
# the next one's.
run_check() {
	(
		choose_stack "$(check_layers "$1")"
		reported "$1" "check_$1"
	)
}

# key_check NAME: of all that its result depends on.
key_check() {
	choose_stack "$(check_layers "$1")"
	key_of "$1" "$stack" "$(hash_of "$top")"
}

# check_jobs_table: docs/tests.md has the table of the jobs as they are.
check_jobs_table() {
	diff -u <(grep '^| ' "$top/docs/tests.md") <(jobs_main | grep '^| ')
}

check_main() {
	each run_check "${CHECKS[@]}"
}
