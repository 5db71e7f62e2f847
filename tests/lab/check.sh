# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# Static checks, with the guest's own tools: formatting, lints, style.

CHECKS=(rustfmt clippy kunit_clippy gpuverbs_lint cuda_lint bench_program shell checkpatch version generations build_messages status)

# in_copy NAME COMMAND: runs a shell command in the lab's root file system, in
# a copy of the checkout that it may litter.
in_copy() {
	local scratch rc=0
	new_dir tmp "$1"
	scratch=$reply
	local binds=("$top:/checkout:ro")
	in_layers "$stack" "$scratch" bash -euo pipefail -c "
		mkdir /tmp/copy
		cd /checkout
		tar -c --exclude=.git --exclude=target . | tar -x -C /tmp/copy
		cd /tmp/copy
		kver=$kver series=$kseries
		$2" || rc=$?
	rm -rf "$scratch"
	return "$rc"
}

check_rustfmt() {
	in_copy rustfmt '
		rustfmt --check src/main.rs
		(cd tests/host && cargo fmt --check)
		for crate in tests/guest/gpuverbs tests/lab/cuda/driver tests/lab/cuda/runtime examples/rust; do
			(cd "$crate" && cargo fmt --check)
		done'
}

# The kernel's own lints: a warning is a failure.
check_clippy() {
	in_copy clippy '
		make clippy KVER="$kver" 2>&1 | tee /tmp/log
		! grep -E "^(warning|error)" /tmp/log'
}

# The module's tests in the kernel are compiled for the debug kernel alone.
check_kunit_clippy() {
	in_copy no-kunit '
		modinfo -k "$kver" -F name nv_peer_mem
		! xz -dcf "$(modinfo -k "$kver" -n nv_peer_mem)" | grep -qa kunit' &&
		guest_layers debug && check_clippy
}

check_gpuverbs_lint() {
	in_copy gpuverbs-lint '
		cd tests/guest/gpuverbs
		cargo clippy --offline --all-targets -- -D warnings'
}

# And the tests of those parts of it that need no GPU.
check_cuda_lint() {
	in_copy cuda-lint '
		for crate in tests/lab/cuda/driver tests/lab/cuda/runtime examples/rust; do
			(cd "$crate" && cargo clippy --offline --all-targets -- -D warnings)
		done
		cd tests/lab/cuda/driver
		cargo test --offline'
}

# What reports measurements, with the crates that it depends on.
check_bench_program() {
	bench_layer
	stack=$benchtools_stack
	in_copy bench-program '
		cd tests/bench
		cargo fmt --check
		cargo clippy --all-targets -- -D warnings
		cargo test'
}

check_shell() {
	in_copy shell '
		shellcheck -e SC1091,SC2034,SC2154,SC2317 init.d/status init.d/*.sh init.d/status.d/*.sh
		shellcheck -e SC1091,SC2034,SC2154 tests/status/run tests/status/*.sh tests/status/cases/*.sh tests/status/bin/*
		shellcheck tests/run tests/lab/initramfs-init tests/lab/build/*.sh tests/lab/ofed/adapt tests/lab/ofed/build
		shellcheck src/locate debian/rust-metadata build_release.sh init.d/nv_peer_mem .ci/run
		shellcheck dkms.conf src/dkms/* debian/*.prerm debian/*.postinst debian/*.postrm debian/postrm.d/*
		# Parts of one program: what one sets another uses.
		shellcheck -e SC1091,SC2034,SC2154 tests/lab/lab tests/lab/*.sh
		shellcheck -e SC1091,SC2034,SC2154 tests/packages/*.sh
		shellcheck -e SC1091,SC2034,SC2154 tests/guest/systems/*.sh tests/guest/systems/*/*.sh \
			tests/guest/systems/machine/run tests/guest/systems/machine/openibd
		shellcheck -e SC1091,SC2034,SC2154 tests/guest/init tests/guest/scenario tests/guest/*.sh tests/guest/scenarios/*.sh tests/guest/defects/*.sh
		shellcheck tests/host/mutants/run'
}

check_checkpatch() {
	in_copy checkpatch '
		# The names of CUDA are not the style of the kernel.
		for file in $(find src examples tests/lab tests/guest/defects tests/guest/clients tests/guest/hosts \
			-path tests/lab/cuda/include -prune -o -name "*.[ch]" -print); do
			perl "/usr/src/linux-lab-$series/scripts/checkpatch.pl" --no-tree --no-summary -q --terse -f "$file"
		done'
}

# The version stands in one place; what must repeat it agrees.
check_version() {
	in_copy version '
		version=$(sed -n "s/^PACKAGE_VERSION=\"\(.*\)\"$/\1/p" dkms.conf)
		[ -n "$version" ]
		[ "$(modinfo -k "$kver" -F version nv_peer_mem)" = "$version" ]
		head -n 1 debian/changelog | grep -qF "nvidia-peer-memory ($version-"'
}

# What the service says of machines that are made of files.
check_status() {
	in_copy status tests/status/run
}

# The simulated driver and the module, compiled with nv-p2p.h of each generation;
# layout.c says where each must have its fields, the module's own header too.
check_generations() {
	in_copy generations '
		double=tests/lab/nvidia
		for headers in "$double"/generations/[0-9]*; do
			make -C "/usr/src/linux-rust-$kver" M="$PWD/$double" NV_SRC="$PWD/$headers" modules
			cp "$double/Module.symvers" "$headers/"
			make KVER="$kver" NV_SRC="$headers"
			nm nv_peer_mem.ko | grep " U nvidia_p2p_" >"/tmp/uses-$(basename "$headers")"
		done
		grep cap_persistent_pages /tmp/uses-515
		! grep cap_persistent_pages /tmp/uses-535
		grep get_pages_persistent /tmp/uses-535
		make -C "/usr/src/linux-rust-$kver" M="$PWD/$double" NV_SRC="$PWD/src/abi/nvidia" layout.o'
}

# What a build lacks is named in one line, with what to install.
check_build_messages() {
	in_copy build-messages '
		lacks() { # PATTERN MAKE_ARGUMENT...
			pattern=$1
			shift
			if make "$@" >/tmp/out 2>&1; then echo "built with $*"; exit 1; fi
			grep -E "^nv_peer_mem: $pattern" /tmp/out || { cat /tmp/out; exit 1; }
			[ "$(grep -c "^nv_peer_mem: " /tmp/out)" = 1 ]
		}
		lacks "no headers of kernel 1.2.3: install" KVER=1.2.3
		lacks "KDIR=/tmp is not a configured kernel tree" KVER="$kver" KDIR=/tmp
		lacks "the headers of kernel .* lack the Rust metadata: " KVER="$kver" KDIR="/usr/src/linux-headers-$kver"
		lacks "OFA_KERNEL=/tmp has no include/rdma/peer_mem.h" KVER="$kver" OFA_KERNEL=/tmp
		lacks "NV_SRC=/tmp has no nvidia/nv-p2p.h" KVER="$kver" NV_SRC=/tmp
		mkdir /tmp/tree
		cp -a "/usr/src/linux-rust-$kver/." /tmp/tree
		rm /tmp/tree/.config
		sed "s/^CONFIG_RUST=y/# CONFIG_RUST is not set/" "/usr/src/linux-headers-$kver/.config" >/tmp/tree/.config
		lacks "kernel .* was built without CONFIG_RUST" KVER="$kver" KDIR=/tmp/tree
		sed "s/^CONFIG_RUSTC_VERSION_TEXT=.*/CONFIG_RUSTC_VERSION_TEXT=\"rustc 1.0.0\"/" "/usr/src/linux-headers-$kver/.config" >/tmp/tree/.config
		lacks "kernel .* was built with .rustc 1.0.0., but rustc here is" KVER="$kver" KDIR=/tmp/tree
		sed "s/^CONFIG_CC_IS_GCC=y/CONFIG_CC_IS_CLANG=y/" "/usr/src/linux-headers-$kver/.config" >/tmp/tree/.config
		lacks "kernel .* was built with clang, and clang is missing" KVER="$kver" KDIR=/tmp/tree
		mv /usr/src/ofa_kernel /usr/src/ofa_kernel.away
		lacks "no RDMA core with peer memory for kernel .*: install" KVER="$kver"
		mv /usr/src/ofa_kernel.away /usr/src/ofa_kernel
		rm "/lib/modules/$kver/updates/dkms/nvidia.ko"
		depmod "$kver"
		lacks "no NVIDIA driver for kernel .*: install the open one" KVER="$kver"'
}

# reported NAME COMMAND...: one line when COMMAND succeeds, its output when not.
# Tests that cargo ran are counted.
reported() {
	local name=$1 log=$LAB_CACHE/log/$1.log
	shift
	if "$@" >"$log" 2>&1; then
		say "$name" "passed$(awk '/^test result:/ { n += $4 } END { if (n) print ", " n " tests" }' "$log")"
	else
		tail -n 60 "$log" >&2
		say "$name" "FAILED; whole output: $log"
		return 1
	fi
}

# In a shell of its own: what one check chooses, a machine for example, is not
# the next one's.
run_check() { (reported "$1" "check_$1"); }

check_main() {
	guest_layers
	each run_check "${CHECKS[@]}"
}
