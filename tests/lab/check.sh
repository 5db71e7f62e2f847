# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# What needs no guest: formatting, lints and style, programs that are tested where they are
# built, and the module's own files between models of their neighbours. check_NAME runs in the
# layers that ../jobs.md names; they are in $stack, and of a kernel's $kver and $kseries.

# in_copy NAME COMMAND: runs a shell command in the root file system of $stack, in a
# copy of the checkout that it may litter. In the copy the array `binds` may have
# put there, files get new times where their contents change, and only there.
in_copy() {
	local scratch rc=0
	new_dir "$1"
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
	local binds=("$dir/copy:/tmp/copy")
	in_copy "$1" "$2" || rc=$?
	exec {using}>&-
	return "$rc"
}

# ---- style ------------------------------------------------------------------

check_rustfmt() {
	in_copy rustfmt '
		rustfmt --check src/main.rs
		for crate in tests/host tests/guest/gpuverbs examples/rust; do
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

# The same with the module's tests in the kernel, which are compiled for the debug kernel alone.
check_kunit_clippy() { check_clippy; }

check_gpuverbs_lint() {
	in_kept_copy gpuverbs_lint '
		cd tests/guest/gpuverbs
		CARGO_TARGET_DIR=target cargo clippy --all-targets -- -D warnings'
}

check_examples_lint() {
	in_kept_copy examples_lint '
		cd examples/rust
		cargo clippy --offline --all-targets -- -D warnings'
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
		parts="^\./tests/(status/|selftest/|packages/|guest/|lab/layers$|lab/[^/]*\.sh$)"
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

# Each way in which a guest can fail does fail.
check_ktap() { in_copy ktap 'python3 -B tests/lab/ktap.py'; }

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
		if grep -nE "@(PLT|GOT)" src/ready/*.S; then exit 1; fi
		grep -qE "\b[wx]17\b" src/ready/aarch64.S
		if grep -nE "\b[wx]18\b" src/ready/aarch64.S; then exit 1; fi

		# assembled NAME WORD...: for a kernel so configured; its instructions in /tmp/NAME.
		assembled() {
			gcc-14 -c -DCONFIG_X86_64 "${@:2}" -o /tmp/ready.o src/kernel/prebuilt.S || return 1
			objdump -d --no-show-raw-insn /tmp/ready.o | awk -F: "{ print \$2 }" | awk "{ print \$1 }" >"/tmp/$1"
		}
		assembled thunks -DCONFIG_RETPOLINE -DCONFIG_RETHUNK
		if grep -x ret /tmp/thunks; then exit 1; fi
		assembled plain -DCONFIG_MITIGATION_RETPOLINE
		returns=$(grep -cx ret /tmp/plain)
		[ "$returns" -gt 20 ]
		if grep -x int3 /tmp/plain; then exit 1; fi
		assembled sls -DCONFIG_MITIGATION_RETPOLINE -DCONFIG_MITIGATION_SLS
		[ "$(grep -x -A 1 ret /tmp/sls | grep -cx int3)" = "$returns" ]
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

# ---- the module's files, compiled for the host ---------------------------------

# Random tests repeat what they did with the same seed.
HOST_SEED=${HOST_SEED:-0x$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}

# in_host NAME COMMAND: in tests/host, with the crates that the layer has compiled. A lock
# file that cargo left in the checkout names other versions than Debian has.
in_host() {
	in_kept_copy "$1" "
		export HOST_SEED=$HOST_SEED CARGO_TARGET_DIR=/tmp/copy/target
		[ -d target ] || cp -a /var/cache/host-target target
		cd tests/host
		rm -f Cargo.lock
		$2"
}

# Every interleaving; then some of them once more under valgrind. No interleaving, no proof.
check_models() {
	in_host models '
		add_up() {
			awk "/: explored [0-9]+ interleavings/ { models++; sum += \$(NF - 3); if (!\$(NF - 3)) none++ }
				END { printf \"note %d interleavings in %d models%s\n\", sum, models, note; exit !models || none }" note="$1" /tmp/log
		}
		cargo clippy --all-targets -- -D warnings
		cargo test --test models -- --show-output >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
		grep "^test result:" /tmp/log
		add_up ""
		# The stacks of loom and those of the threads, of 2 MiB, may lie beside each other: a
		# step from one to the other must not pass for a large frame, whose bytes are new.
		export RUST_TEST_THREADS=1
		export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --max-stackframe=1000000 --error-exitcode=9"
		LOOM_MAX_PREEMPTIONS=1 cargo test --test models -- --show-output >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
		add_up ", watched by valgrind"
		grep "^==.* ERROR SUMMARY: 0 errors" /tmp/log'
}

# The module's own kernel crate: what threads share by it, in every interleaving; and over
# POSIX threads, whose memory and locks valgrind watches.
check_kernel_crate() {
	in_host kernel_crate '
		cargo test --test kernel_orders
		for tool in memcheck helgrind; do
			CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/kernel_crate/watched $tool" cargo test --test kernel_crate
		done'
}

check_arithmetic() {
	in_host arithmetic '
		echo "note HOST_SEED=$HOST_SEED"
		cargo test --test arithmetic
		! cargo miri --version || cargo miri test --test arithmetic'
}

# check_mutants [NAME...]: each is killed by the test that it names.
check_mutants() { in_host mutants "mutants/run $*"; }

check_gpuverbs() { in_kept_copy gpuverbs 'cd tests/guest/gpuverbs; CARGO_TARGET_DIR=target cargo test'; }
