#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# check.sh NAME: runs a check that needs no guest. Checks are formatting, lints and style, tests of
# programs in the place where they are built, and tests of the module's own files with models of the
# neighbours. A check runs in the layers that ../jobs.md names, in a copy of the checkout. If a
# layer has a kernel, the variables kver and kseries name the kernel.
set -euo pipefail

# The copy may exist from an earlier run, with the results of cargo. A file gets a new time only if
# its contents have changed, because cargo compares times.
mkdir -p /tmp/copy
rsync --recursive --links --perms --checksum --delete --exclude=.git --exclude=target /checkout/ /tmp/copy/
cd /tmp/copy

# ---- style ------------------------------------------------------------------

check_rustfmt() {
	rustfmt --check src/main.rs
	for crate in preload tests/host tests/guest/gpuverbs examples/rust; do
		(cd "$crate" && cargo fmt --check)
	done
}

# in_order NAME FEWEST FILE...: checks that the files do not import each other in a circle, directly
# or through other files.
in_order() {
	for file in "${@:3}"; do
		awk -v name="$(basename "$file" .rs)" '
			function imported(list, names, count) {
				gsub(/[{} ]/, "", list)
				count = split(list, names, /,/)
				for (i = 1; i <= count; i++) if (names[i] ~ /^[a-z]/) { sub(/::.*/, "", names[i]); print name, names[i] }
			}
			/^use crate::\{$/ { inside = 1; next }
			/^\};/ { inside = 0 }
			inside && match($0, /^    [a-z_0-9]+/) { print name, substr($0, 5, RLENGTH - 4) }
			/^use crate::\{.*\};/ { sub(/^use crate::/, ""); sub(/;.*/, ""); imported($0) }
			/^use crate::[a-z]/ { split($0, word, /::|;/); print name, word[2] }' "$file"
	done >"/tmp/imports.$1"
	[ "$(wc -l <"/tmp/imports.$1")" -gt "$2" ]
	tsort "/tmp/imports.$1" >/tmp/order
}

# rooms DIRECTORY: prints, for each import of one part of the directory by another, both parts. A
# part is a file, or a directory of the directory.
rooms() {
	(cd "$1" && grep -rE --include='*.py' '^ *(from|import) [a-z_]+' .) |
		sed -E 's#^\./([a-z_]+)[^:]*: *(from|import) ([a-z_]+).*#\1 \3#' |
		while read -r from to; do
			if [ "$from" != "$to" ] && { [ -e "$1/$to" ] || [ -e "$1/$to.py" ]; }; then echo "$from $to"; fi
		done | sort -u
}

# Checks that files import each other in one direction: those of the module, of the preloaded library
# and of the emulated card, and the directories of the lab.
check_imports() {
	in_order module 40 src/*.rs
	in_order preload 15 preload/src/*.rs
	rooms tests/lab >/tmp/lab
	[ "$(tr '\n' ',' </tmp/lab)" = "reports layers,reports run,run layers," ]
	rooms tests/doubles/nic >/tmp/nic
	[ "$(wc -l </tmp/nic)" -gt 30 ]
	tsort /tmp/nic >/tmp/order
}

# Runs the kernel's own lints, and fails on a warning. Removes earlier results first, because clippy
# warns only about files that it compiles.
check_clippy() {
	make clippy KVER="$kver" 2>&1 | tee /tmp/log
	if grep -E "^(warning|error)" /tmp/log; then exit 1; fi
}

# Checks that the assembly of a release has no call to panic outside core, and that such a call would
# be found.
check_panics() {
	for arch in x86_64 aarch64; do
		NVPM_ARCH=$arch make -s prebuilt
		tests/lab/checks/panics "build/prebuilt/$arch.S"
		sed "0,/^nvpm_revoke:/s/^nvpm_revoke:/&\n\tb\tcore9panicking/" "build/prebuilt/$arch.S" >/tmp/planted.S
		if tests/lab/checks/panics /tmp/planted.S; then exit 1; fi
	done
}

# Checks the same of the module that is compiled against the kernel's own crate, where panic is a
# function of the kernel. The crate's own generic functions, such as KVec::push, have such calls, and
# are told apart by their lines. Only the objects are compiled, because linking needs both
# neighbours.
check_panics_in_kernel() {
	make clippy KVER="$kver" >/dev/null 2>&1
	objdump -d -r -l src/main.o >/tmp/code
	grep -q '<nvpm_revoke>:$' /tmp/code
	awk '/^\/.*:[0-9]+/ { place = $1 } /[[:space:]]R_[A-Z0-9_]+[[:space:]].*9panicking/ { print place }' /tmp/code | sort | uniq -c >/tmp/panics
	cat /tmp/panics
	grep -q '/rust/kernel/' /tmp/panics
	if grep -v '/rust/kernel/' /tmp/panics; then exit 1; fi
}

# Does the same as `clippy` for the module's KUnit tests, which only the debug kernel compiles.
check_kunit_clippy() { check_clippy; }

check_examples_lint() { cd examples/rust && cargo clippy --offline --all-targets -- -D warnings; }

# Runs shellcheck on every file with a first line or a suffix of the shell.
check_shell() {
	shell="^(#!.*[/ ](ba|da)?sh( |$)|# shellcheck shell=)"
	{
		find . -name target -prune -o -type f -name "*.sh" -print
		# A program in Python may contain a script, whose first line is in the middle of the program.
		grep -rlIE --exclude-dir=target --exclude="*.py" "$shell" .
	} | sort -u >/tmp/files
	# The files of one program use each other's variables, and in the service also each other's
	# functions.
	service="^\./init\.d/"
	parts="^\./tests/(nvpm|packages|guest|doubles/operators)/|^\./build/(configure$|rust-assembly$|find/|dkms/)"
	parts+="|^\./tests/lab/checks/(check\.sh|backports|build_messages|core_messages)$"
	# A user's locale changes the results of tr and sort, and the messages of compilers and
	# dkms. So programs must set the locale. The exceptions are files that only call programs
	# that set the locale, and files that must keep the user's locale.
	product="^\./(build_release\.sh|build|docs|debian|init\.d|preload|src|container)(/|$)"
	called="^\./(build/(dkms|find|rust)/[a-z]+\.sh|init\.d/conf\.sh|dkms\.conf|debian/post(inst|rm)\.d/.*)$"
	grep -E "$product" /tmp/files | grep -vE "$called" | xargs grep -Lx "LC_ALL=C" >/tmp/without_locale || :
	cat /tmp/without_locale
	[ ! -s /tmp/without_locale ]
	grep -E "$service" /tmp/files | xargs shellcheck -e SC1091,SC2034,SC2154,SC2317
	grep -E "$parts" /tmp/files | xargs shellcheck -e SC1091,SC2034,SC2154
	grep -vE "$service|$parts" /tmp/files | xargs shellcheck
}

check_checkpatch() {
	local checkpatch=(perl "/usr/src/linux-lab-$kseries/scripts/checkpatch.pl" --no-tree --no-summary -q --terse)
	local apart=(src/c/compat.h tests/doubles/compat.h tests/doubles/driver/closed.c tests/doubles/driver/driver.h)
	# These files need exceptions. They replace names that older kernels lack, contain unchanged
	# macros of others, have a licence that the kernel does not know, or use NVIDIA's names for
	# types and functions.
	"${checkpatch[@]}" --ignore MACRO_ARG_UNUSED -f "${apart[0]}"
	"${checkpatch[@]}" --ignore "LINUX_VERSION_CODE,CONSTANT_COMPARISON,MACRO_ARG_UNUSED,SPACING,NEW_TYPEDEFS,COMPLEX_MACRO,CONST_STRUCT" -f "${apart[1]}"
	"${checkpatch[@]}" --ignore MODULE_LICENSE -f "${apart[2]}"
	"${checkpatch[@]}" --ignore NEW_TYPEDEFS,MACRO_ARG_UNUSED -f "${apart[3]}"
	# The replacements for kernel functions that use the C library have the kernel's names, but
	# need not follow the kernel's rules.
	"${checkpatch[@]}" --ignore "NEW_TYPEDEFS,MACRO_ARG_UNUSED,VOLATILE,PREFER_DEFINED_ATTRIBUTE_MACRO,PRINTK_WITHOUT_KERN_LEVEL,JIFFIES_COMPARISON,AVOID_EXTERNS" \
		-f tests/host/c/*.c tests/doubles/kernel/c/*.[ch]
	# The names of CUDA do not have the kernel's style.
	find src examples tests/lab tests/doubles/{driver,core,cuda,idlegpu,operators,compat.h} tests/guest/modules tests/guest/defects tests/guest/clients tests/guest/hosts \
		-path tests/doubles/cuda/include -prune -o -name '*.[ch]' -print |
		grep -vxF "$(printf '%s\n' "${apart[@]}")" | xargs "${checkpatch[@]}" -f
}

# Checks that all files that repeat the version agree with dkms.conf. The check `generations` looks
# at the module's version.
check_version() {
	version=$(sed -n "s/^PACKAGE_VERSION=\"\(.*\)\"$/\1/p" dkms.conf)
	[ -n "$version" ]
	head -n 1 debian/changelog | grep -F "nvidia-peer-memory ($version-"
	for manifest in nvpm/Cargo.toml nvpm/*/Cargo.toml; do grep -x "version = \"$version\"" "$manifest"; done
}

# Checks that the pages repeat the oldest versions from the one file that the programs read.
check_oldest() {
	# shellcheck source=build/find/oldest.sh
	. build/find/oldest.sh
	# has FILE TEXT: succeeds if the page contains the text.
	has() { grep -qF -e "$2" "$1" || { echo "$1 does not say: $2" && return 1; }; }
	has docs/support.md "| kernel | $oldest_kernel |"
	has docs/support.md "| kernel whose Rust crates are used | $oldest_crates |"
	has docs/support.md "| NVIDIA driver | $oldest_driver |"
	has docs/support.md "| rustc | $oldest_rustc |"
	has docs/support.md "| dkms, on RPM systems | $(sed -n 's/^Requires: *dkms >= //p' rpm/nvidia_peer_memory.spec) |"
	has README.md "kernel $oldest_kernel or later"
	has docs/building.md "a rustc of $oldest_rustc or later"
	has Makefile "rustc-1.99 ... rustc-$oldest_rustc)"
	has tests/host/kernel_crate/Cargo.toml "rust-version = \"$oldest_rustc\""
	# Checks that no page and no message names another minimum.
	oldest_cargo=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' nvpm/Cargo.toml)
	has docs/support.md "| cargo, for \`nvpm-bin\` | $oldest_cargo |"
	has docs/building.md "cargo and rustc $oldest_cargo or later"
	has build_release.sh "cargo and rustc $oldest_cargo or later"
	has Makefile "cargo-1.99 ... cargo-$oldest_cargo)"
	has init.d/nvpm-missing "cargo $oldest_cargo"
	if grep -rnE "(rustc|Rust) (of )?1\.[0-9]+ or later" README.md build_release.sh docs src debian rpm preload init.d |
		grep -v -e "$oldest_rustc or later" -e "cargo and rustc $oldest_cargo or later" -e "is for development"; then return 1; fi
}

# The files that must name each parameter of the module (CONTRIBUTING.md has them as a list).
parameter_places="src/c/nvpm.h src/include/bindings.rs src/parameters.rs README.md docs/installing.md docs/migrating.md
	docs/nv_peer_mem.8 tests/host/c/module.c tests/doubles/models/c.rs tests/guest/scenarios/parameters.sh"

# places_without PARAMETER: prints the files that do not name the parameter.
places_without() {
	local place
	for place in $parameter_places; do
		grep -rqE "(^|[^a-z_])(nvpm_|param_)?$1($|[^a-z_])" "$place" || echo "$place does not name the parameter $1"
	done
}

# Checks that each file that has to name the module's parameters names all of them, that CONTRIBUTING.md
# lists these files, and that a missing parameter would be found.
check_parameters() {
	local parameter place
	sed -n 's/^module_param[a-z_]*(\([a-z_]*\),.*/\1/p' src/c/module.c >/tmp/parameters
	[ "$(wc -l </tmp/parameters)" -ge 2 ]
	while read -r parameter; do places_without "$parameter"; done </tmp/parameters >/tmp/places
	for place in $parameter_places; do
		grep -qF "\`$place\`" CONTRIBUTING.md || echo "CONTRIBUTING.md does not list $place"
	done >>/tmp/places
	cat /tmp/places
	[ ! -s /tmp/places ]
	[ "$(places_without no_such_parameter | wc -l)" = "$(wc -w <<<"$parameter_places")" ]
}

# Measures how plainly comments and pages are written.
check_prose() { python3 -B tests/lab/checks/prose.py; }

# Tests the pages, the completion and the metrics of nvpm, with the tools that read them.
check_nvpm() {
	built_nvpm
	python3 -B -m pytest -q -p no:cacheprovider tests/nvpm
}

# cargo_nvpm COMMAND...: runs cargo for the programs in Rust, with the layer's crates and no network.
cargo_nvpm() {
	[ -d target ] || cp -a /var/cache/nvpm-target target
	(cd nvpm && CARGO_HOME=/opt/nvpm-crates CARGO_TARGET_DIR=/tmp/copy/target cargo "$@")
}

# build_nvpm: builds the programs in Rust, which the tests of nvpm and of the container image run.
build_nvpm() {
	cargo_nvpm build --locked --offline --workspace
	export NVPM_BIN=/tmp/copy/target/debug/nvpm-bin NVPM_KEEPER=/tmp/copy/target/debug/nv-peer-mem
}

# built_nvpm: names the programs of the layer, which are compiled as for a release.
built_nvpm() {
	NVPM_BIN=/opt/nvpm-programs/$(uname -m)
	NVPM_KEEPER=/opt/nvpm-programs/keeper-$(uname -m)
	export NVPM_BIN NVPM_KEEPER
}

# Builds and tests nvpm: its functions, the tables of machines, logs with inputs of each form, and fleets.
check_nvpm_rust() {
	cargo_nvpm fmt --check
	cargo_nvpm clippy --locked --offline --workspace --all-targets -- -D warnings
	cargo_nvpm test --locked --offline --workspace
	build_nvpm
	python3 -B -m pytest -q -p no:cacheprovider tests/explain tests/compare
}

# explains PROGRAM...: checks that PROGRAM explains a log.
explains() {
	echo "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)" >/tmp/failure
	code=0
	"$@" explain /tmp/failure >/tmp/answer || code=$?
	cat /tmp/answer
	[ "$code" = 3 ]
	grep "^Cause (certain): the loaded ib_core is the distribution's, without peer memory" /tmp/answer
}

# Compiles nvpm-bin again as a release has it, from nothing, in another directory, as another user in another
# time zone, and checks that the bytes are the same. Also checks that the licences are those of the crates.
check_nvpm_program() {
	export NVPM_SYSROOTS=/opt/sysroots TZ=Asia/Tokyo
	tar -xJf /opt/nvpm-programs/crates.tar.xz -C /tmp
	python3 -B nvpm/licences /tmp/crates | diff LICENSES/crates.txt -
	explains "/opt/nvpm-programs/$(uname -m)"
	useradd --create-home another
	mkdir -p "/tmp/another tree" nvpm/prebuilt
	cp -a nvpm "/tmp/another tree/"
	cp -a /opt/nvpm-programs/crates.* "/tmp/another tree/nvpm/prebuilt/"
	chown -R another "/tmp/another tree"
	for arch in x86_64 aarch64; do
		su another -c "umask 077 && cd '/tmp/another tree' && sh nvpm/compile release $arch"
		for file in "$arch" "$arch.made" "keeper-$arch" "keeper-$arch.made"; do
			cmp "/opt/nvpm-programs/$file" "/tmp/another tree/nvpm/prebuilt/$file"
		done
	done
	CARGO_NET_OFFLINE=true CARGO_HOME=/opt/nvpm-crates sh nvpm/compile crates
	cmp /opt/nvpm-programs/crates.tar.xz nvpm/prebuilt/crates.tar.xz
	# The gate can refuse: this program has the C library of this system, which is newer.
	export NVPM_SYSROOTS=/tmp/sysroots
	mkdir -p /tmp/sysroots
	ln -s / "/tmp/sysroots/$(uname -m)"
	rm -f "nvpm/prebuilt/$(uname -m)"
	refused_for_glibc
}

refused_for_glibc() {
	if sh nvpm/compile release "$(uname -m)" 2>/tmp/log; then return 1; fi
	grep "needs glibc 2\.[0-9]*, and a release's has to run with 2.28: " /tmp/log
}

# Tests the scripts of the service, of dkms and of the packages on systems that are made of files, and
# which mistakes a sweep makes, what counts as prose, and which paths are dead.
check_scripts() { PYTHONPATH=tests/lab python3 -B -m pytest -q -p no:cacheprovider tests/scripts tests/sweep tests/lab/checks tests/lab/run/test_stale.py tests/lab/reports/test_programs_page.py; }

# Runs updates and removals at which the power is cut or a disk is full with dkms itself.
check_dkms_steps() {
	for program in /opt/dkms/*/usr/sbin/dkms; do
		NVPM_DKMS=$program python3 -B -m pytest -q -p no:cacheprovider tests/scripts/test_steps.py
	done
}

# Makes small mistakes in the files of an area, and checks that a test notices each ($SWEEP).
check_sweep() {
	# The copies, with what cargo makes, would fill the memory.
	export TMPDIR=/var/tmp
	case $SWEEP in
	nvpm* | keeper*) export CARGO_HOME=/opt/nvpm-crates SWEEP_TARGET=/var/cache/nvpm-target ;;
	module*) export SWEEP_TARGET=/var/cache/host-target ;;
	esac
	# shellcheck disable=SC2086 # words
	python3 -B tests/sweep/sweep.py $SWEEP
}

# Checks that a test notices mistakes that people thought of. All of them would take hours, so each
# run takes others, by a seed that it prints.
check_thought_module() { SWEEP="module --thought --count 12" check_sweep; }
check_thought_c() { SWEEP="c --thought" check_sweep; }
check_thought_preload() { SWEEP="preload --thought --count 10" check_sweep; }
check_thought_keeper() { SWEEP="keeper --thought --count 6" check_sweep; }
check_thought_nvpm() { SWEEP="nvpm --thought --count 3" check_sweep; }
check_thought_scripts() { SWEEP="scripts --thought --count 15" check_sweep; }

# Tests the preloaded library in real processes, with doubles of its neighbours.
check_preload() {
	(cd preload && cargo clippy --offline -- -D warnings)
	CC=gcc-14 python3 -B -m pytest -q -p no:cacheprovider tests/preload
}

# Runs the same tests with the libraries of packages and releases. The first library is linked by cc
# from a release's assembly, as in packages. The second is linked by ld, as a release's file. The third is
# the library for arm64, which is tested with emulated programs.
check_preload_built() {
	local library=/tmp/any/libnvpm_preload.so
	mkdir /tmp/any
	# tested LIBRARY [OPTION...]: runs the tests with this library.
	tested() { PRELOAD_LIBRARY=$1 python3 -B -m pytest -q -p no:cacheprovider tests/preload "${@:2}"; }
	export CC=gcc-14
	make preload
	tested "$PWD/preload/libnvpm_preload.so"
	sh preload/link x86_64 "$library"
	tested "$library"
	# On arm64 all verbs are doubles, there is no musl, and Python cannot load the libcuda.
	export CC=aarch64-linux-gnu-gcc PRELOAD_EMULATOR="qemu-aarch64 -L /usr/aarch64-linux-gnu"
	make preload
	tested "$PWD/preload/libnvpm_preload.so" -k "not real_libibverbs and not real_gpu and not musl"
	sh preload/link aarch64 "$library"
	tested "$library" -k "not real_libibverbs and not real_gpu and not musl"
}

# Checks that programs in other languages run with the preloaded library as without it. None may be
# left out.
check_preload_programs() {
	CC=gcc-14 python3 -B -m pytest -q -rs -p no:cacheprovider tests/preload/programs.py | tee /tmp/log
	if grep -q "not tried" /tmp/log; then exit 1; fi
}

# Tests the manifests and hooks of the container image, and its program as the image runs it. The check
# nvpm_rust tests the functions of the program on nodes that are made of files.
check_container() {
	built_nvpm
	python3 -B -m pytest -q -p no:cacheprovider tests/container
}

# Tests the tests for hardware, on nodes that are made of files.
check_hardware() { python3 -B -m pytest -q -p no:cacheprovider tests/hardware; }

# Checks how Python is written (ruff.toml), and whether its types agree (mypy.ini).
check_python() {
	local written=(nvpm/licences tests/container tests/compare tests/explain tests/nvpm tests/preload)
	written+=(tests/scripts tests/lab tests/hardware tests/host tests/sweep)
	written+=(tests/guest/bench.py tests/guest/scale.py tests/guest/cuda tests/doubles)
	ruff format --no-cache --diff "${written[@]}"
	ruff check --no-cache "${written[@]}"
	mypy
}

# Checks that each tag of the list of open work stands in the code, and each tag of the code in the
# list.
check_todo() {
	sed -n 's/^| \([A-Z0-9]\{4\}\) | .*/\1/p' docs/maintaining.md | sort >/tmp/listed
	grep -rhoE --exclude-dir=.git --exclude-dir=target --exclude=maintaining.md 'TODO\[[A-Z0-9]{4}\]' . |
		sed 's/TODO\[\(.*\)\]/\1/' | sort -u >/tmp/marked
	[ -s /tmp/listed ]
	diff /tmp/listed /tmp/marked
}

# Checks the report of measurements.
check_bench() { PYTHONPATH=tests/guest:tests/lab python3 -B tests/lab/reports/test_bench.py; }

# Checks that a soak continues where it was cut off.
check_soak() { PYTHONPATH=tests/lab python3 -B tests/lab/reports/test_soak.py; }

# Checks that commands run in many layers, and that a failure of the lab itself is reported as such.
check_layers() { PYTHONPATH=tests/lab python3 -B tests/lab/run/test_making.py; }

# Checks that each way in which a guest can fail is reported as a failure.
check_ktap() { python3 -B tests/lab/run/ktap.py; }

# Tests the emulated ConnectX without a guest.
check_nic() {
	LAB_MLX5_HEADERS=$(echo /usr/src/linux-headers-*-common/include/linux/mlx5) \
		python3 -B -m pytest -q -p no:cacheprovider -rA tests/doubles/nic/test_nic.py | sed 's/^PASSED/ok/'
}

# Checks that no program of a guest, a package test or the lab names a file that has moved.
check_dead_paths() {
	PYTHONPATH=tests/lab python3 -B tests/lab/checks/dead_paths.py
}

check_defects_table() { tests/lab/checks/defects_table; }

# repository USER: makes a git repository of the checkout in /tmp/USER, which belongs to USER.
repository() {
	cp -a /tmp/copy "/tmp/$1"
	rm -rf "/tmp/$1/preload/prebuilt" "/tmp/$1/build/prebuilt"
	git -C "/tmp/$1" init --quiet
	git -C "/tmp/$1" add .
	git -C "/tmp/$1" -c user.name=lab -c user.email=lab@localhost -c commit.gpgsign=false \
		commit --quiet --date=2026-01-01T00:00:00Z -m lab
	chown -R "$1" "/tmp/$1"
}

# Makes a release on Debian 11 as README.md says, and builds, installs and purges its packages.
# Debian 11 has the oldest rustc, dkms, rpm and git that the pages name.
check_debian11() {
	grep -x "11\..*" /etc/debian_version
	rustc --version | grep -F "rustc $(sed -n 's/^oldest_rustc=//p' build/find/oldest.sh)."
	useradd --create-home builder
	export GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
	repository builder
	# Debian 11 has no cargo that is new enough, so the program comes from a machine that has one.
	if su builder -c "cd /tmp/builder && OUT=/tmp/builder/none ./build_release.sh" 2>/tmp/log; then return 1; fi
	grep "nvpm-bin cannot be compiled for x86_64: cargo and rustc 1.85 or later are missing" /tmp/log
	export NVPM_PROGRAMS=/opt/nvpm-programs
	su builder -c "cd /tmp/builder && OUT=/tmp/builder/release ./build_release.sh"
	useradd --create-home another
	repository another
	mv /tmp/another "/tmp/another tree"
	su another -c "umask 077 && cd '/tmp/another tree' && LANG=C.UTF-8 OUT='/tmp/another tree/out' ./build_release.sh"
	cmp /tmp/builder/release/SHA256SUMS "/tmp/another tree/out/SHA256SUMS"
	cd /tmp/builder/release
	sha256sum -c SHA256SUMS
	tar xzf ./*.orig.tar.gz
	cd nvidia-peer-memory-*/
	padded
	dpkg-buildpackage -us -uc -b
	cd ..
	dpkg -i nvidia-peer-memory_*.deb
	cmp /usr/lib/nvidia-peer-memory/nvpm-bin ../release/nvpm-[0-9]*-x86_64
	explains nvpm
	dpkg -i nvidia-peer-memory-dkms_*_all.deb | tee /tmp/log
	grep "nv_peer_mem is installed" /tmp/log
	dpkg -i nvidia-peer-memory-preload_*.deb
	dkms status | grep ^nvidia-peer-memory
	dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms nvidia-peer-memory-preload
	find /etc /usr /var/lib -name "*nv_peer_mem*" -o -name "*nvidia[-_]peer[-_]memory*" >/tmp/left
	cat /tmp/left
	[ ! -s /tmp/left ]
	made_without_rust
}

# Checks that a checkout without Rust makes the packages that need no Rust.
made_without_rust() {
	cd /tmp/copy
	rm -rf preload/prebuilt build/prebuilt
	RUSTC=/none dpkg-buildpackage -us -uc -b 2>&1 | tee /tmp/log
	grep -x "So there is no package nvidia-peer-memory-preload." /tmp/log
	grep -x "So nvidia-peer-memory has no nvpm." /tmp/log
}

# padded: succeeds if there are 16 bytes of nop before each function in the assembly for x86-64,
# because kernels with CONFIG_CALL_PADDING write code into these bytes.
padded() {
	gcc -c -DCONFIG_X86_64 -DCONFIG_RETPOLINE -DCONFIG_RETHUNK -o /tmp/padded.o build/prebuilt.S
	objdump -d --no-show-raw-insn /tmp/padded.o | awk '
		# Some versions of objdump name the padding of the first function in a section.
		/-0x10>:$/ { next }
		/^[0-9a-f]+ <.*>:$/ { functions++; if (nops < 16) { print "no padding before " $2; bad = 1 } }
		/^ / { nops = $2 == "nop" ? nops + 1 : 0 }
		END { exit bad || functions < 50 }'
}

# Checks that the simulated driver compiles with an nv-p2p.h of the newest generation, that the
# module compiles with its own header of the same generation and refuses a header that is too old,
# and that the module has the version of dkms.conf.
check_generations() {
	double=tests/doubles/driver
	version=$(sed -n "s/^PACKAGE_VERSION=\"\(.*\)\"$/\1/p" dkms.conf)
	"$double/header" 590 /tmp/headers/590
	make -C "/lib/modules/$kver/build" M="$PWD/$double" NV_SRC=/tmp/headers/590 NV_CODE="$(echo /usr/src/nvidia-*/nvidia)" modules
	headers=/tmp/headers/own
	mkdir "$headers"
	cp src/include/nvidia/nv-p2p.h "$double/Module.symvers" "$headers/"
	make KVER="$kver" NV_SRC="$headers"
	[[ "$(modinfo -F version nv_peer_mem.ko)" == "$version+"* ]]
	nm nv_peer_mem.ko | grep " U nvidia_p2p_get_pages_persistent"
	"$double/header" 515 /tmp/headers/515
	if make KVER="$kver" NV_SRC=/tmp/headers/515 2>/tmp/refused; then exit 1; fi
	grep "of an NVIDIA driver before 535" /tmp/refused
	# The module also refuses a header that is newer than the module.
	for structure in PAGE_TABLE DMA_MAPPING; do
		mkdir -p "/tmp/headers/$structure"
		sed "s/\(define NVIDIA_P2P_${structure}_VERSION[[:blank:]]\).*/\10x00030000/" "$headers/nv-p2p.h" >"/tmp/headers/$structure/nv-p2p.h"
		cp "$headers/Module.symvers" "/tmp/headers/$structure/"
		if make KVER="$kver" NV_SRC="/tmp/headers/$structure" >/tmp/refused 2>&1; then exit 1; fi
		grep "error: .*this NVIDIA driver is newer than this version of nv_peer_mem" /tmp/refused
	done
}

# Checks three properties of a release's assembly. It has the same bytes wherever it is made, and
# contains no path of that place. It works with kernels without return thunks or retpolines, which
# the lab lacks, and refuses kernels with which it cannot work. On arm64 it does not use register
# 18, which points to the shadow stack in some kernels.
check_ready() {
	for arch in x86_64 aarch64; do NVPM_ARCH=$arch make prebuilt; done
	cmp build/prebuilt/x86_64.S /ready/x86_64.S
	mkdir -p /tmp/another/place
	cp -a Kbuild Makefile dkms.conf build src /tmp/another/place/
	mv build/prebuilt /tmp/first
	rm -r /tmp/another/place/build/prebuilt
	NVPM_ARCH=aarch64 make -C /tmp/another/place prebuilt
	cmp /tmp/first/aarch64.S /tmp/another/place/build/prebuilt/aarch64.S
	mv /tmp/first build/prebuilt
	if grep -nE "/(tmp|usr|root|home|build|checkout)/" build/prebuilt/*.S; then exit 1; fi
	if grep -nE "@(PLT|GOT)" build/prebuilt/*.S; then exit 1; fi
	grep -qE "\b[wx]17\b" build/prebuilt/aarch64.S
	if grep -nE "\b[wx]18\b" build/prebuilt/aarch64.S; then exit 1; fi

	# assembled NAME WORD...: assembles for a kernel with this configuration, and writes the
	# instructions to /tmp/NAME.
	assembled() {
		gcc-14 -c -DCONFIG_X86_64 "${@:2}" -o /tmp/ready.o build/prebuilt.S || return 1
		objdump -d --no-show-raw-insn /tmp/ready.o | awk -F: '{ print $2 }' | awk '{ print $1 }' >"/tmp/$1"
	}
	assembled thunks -DCONFIG_RETPOLINE -DCONFIG_RETHUNK
	if grep -x ret /tmp/thunks; then exit 1; fi
	padded
	assembled plain -DCONFIG_MITIGATION_RETPOLINE
	returns=$(grep -cx ret /tmp/plain)
	[ "$returns" -gt 20 ]
	if grep -x int3 /tmp/plain; then exit 1; fi
	assembled sls -DCONFIG_MITIGATION_RETPOLINE -DCONFIG_MITIGATION_SLS
	[ "$(grep -x -A 1 ret /tmp/sls | grep -cx int3)" = "$returns" ]
	# The code may call only one thunk, which the kernel has or the file defines.
	thunks() { nm /tmp/ready.o | awk '$NF ~ /_thunk_/ { print $(NF - 1), $NF }' | grep -v return; }
	[ "$(thunks)" = "U __x86_indirect_thunk_r11" ]
	assembled no_retpolines
	[ "$(thunks)" = "t __x86_indirect_thunk_r11" ]
	[ "$(grep -cx ret /tmp/no_retpolines)" = "$returns" ]
	[ "$(objdump -dr --disassemble=__x86_indirect_thunk_r11 /tmp/ready.o | grep -cE "jmp +\*%r11")" = 1 ]
	refused() { if assembled refused "${@:2}" 2>/tmp/said; then exit 1; fi; grep "#error \"this kernel $1" /tmp/said; }
	refused "checks the type of indirect calls" -DCONFIG_RETPOLINE -DCONFIG_CFI
	refused "checks the type of indirect calls" -DCONFIG_RETPOLINE -DCONFIG_CFI_CLANG
}

# Checks that the bindings in the tree are those that bindgen makes from the headers. The command
# `tests/run bindings` shares /tmp/new with this check, and takes the new file from it.
check_bindings() {
	cp src/include/bindings.rs /tmp/before
	make bindings KVER="$kver"
	if [ -d /tmp/new ]; then
		cp src/include/bindings.rs /tmp/new/
		return
	fi
	diff -u /tmp/before src/include/bindings.rs || {
		echo "tests/run bindings writes src/include/bindings.rs anew."
		return 1
	}
}

# Checks how a build compiles Rust, and which messages it prints about missing parts and packages to
# install.
check_build_messages() { tests/lab/checks/build_messages "$kver"; }

# Checks that the features of a kernel, and not its version, decide how the module is compiled.
check_backports() { tests/lab/checks/backports "$kver"; }

# ---- crates -------------------------------------------------------------------

# crates TARGET DIR: changes to DIR, and lets cargo use the crates that the layer has compiled in
# TARGET. Removes the lock file, because it may name other versions than Debian has.
crates() {
	export CARGO_TARGET_DIR=/tmp/copy/target
	[ -d target ] || cp -a "$1" target
	cd "$2"
	rm -f Cargo.lock
}

check_gpuverbs() {
	crates /var/cache/client-target tests/guest/gpuverbs
	cargo test
}

check_gpuverbs_lint() {
	crates /var/cache/client-target tests/guest/gpuverbs
	cargo clippy --all-targets -- -D warnings
}

# ---- the module's files, compiled for the host ---------------------------------

in_host() { crates /var/cache/host-target tests/host; }

# quickly SET: runs the chosen tests of SET, but only interleavings with few preemptions.
quickly() { LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-2} cargo test --test "$1" -- "$TESTS"; }

# Runs every interleaving, and then some of them again under valgrind. Fails if no interleaving was
# run, because such a run proves nothing.
check_models() {
	in_host
	add_up() {
		awk "/: explored [0-9]+ interleavings/ { models++; sum += \$(NF - 3); if (!\$(NF - 3)) none++ }
			END { printf \"note %d interleavings in %d models%s\n\", sum, models, note; exit !models || none }" note="$1" /tmp/log
	}
	[ -z "${TESTS:-}" ] || { quickly models; return; }
	cargo clippy --all-targets -- -D warnings
	cargo test --test models -- --show-output >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
	grep "^test result:" /tmp/log
	add_up ""
	# Two stacks of 2 MiB may be next to each other. Valgrind must not take a switch between
	# them for one large frame, because it would then treat the bytes of the other stack as
	# uninitialised.
	export RUST_TEST_THREADS=1
	export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --max-stackframe=1000000 --error-exitcode=9"
	LOOM_MAX_PREEMPTIONS=1 cargo test --test models -- --show-output >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
	add_up ", watched by valgrind"
	grep "^==.* ERROR SUMMARY: 0 errors" /tmp/log
}

# Tests the module's own kernel crate, with valgrind watching its memory.
check_kernel_crate() {
	in_host
	[ -z "${TESTS:-}" ] || { quickly kernel_crate; return; }
	CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/kernel_crate/watched memcheck" cargo test --test kernel_crate
}

# Tests the module's C files, with functions of the kernel that the C library implements.
check_c_half() { tests/host/c/run ${TESTS:+"$TESTS"}; }

# Tests the arithmetic. The random tests make the same choices if the seed is the same.
check_arithmetic() {
	in_host
	[ -z "${TESTS:-}" ] || { quickly arithmetic; return; }
	export HOST_SEED=${HOST_SEED:-0x$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}
	echo "note HOST_SEED=$HOST_SEED"
	cargo test --test arithmetic
	if cargo miri --version; then
		cargo miri test --test arithmetic
	else
		echo "note not watched by Miri, which this rustc does not have"
	fi
}

"check_$1"
