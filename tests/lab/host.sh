# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# The parts that need no kernel, tested by cargo: the module's own files
# (tests/host), that their tests can fail (its mutants), and the verbs client.

. "$lab/check.sh"

# Each is done by run_host: the tests and the mutants whole or in part, and the verbs client.
HOST_JOBS=(host host_quick mutants mutants_few gpuverbs)

# Random tests repeat what they did with the same seed.
HOST_SEED=${HOST_SEED:-${SEED:-0x$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}}

# What the tests on the host begin with. A lock file that cargo left in the checkout
# names other versions than Debian has. The layer has compiled the crates.
host_begins='
	export CARGO_TARGET_DIR=/tmp/copy/target
	[ -d target ] || cp -a /var/cache/host-target target
	cd tests/host
	rm -f Cargo.lock'

# Lines that begin with "host: " are shown on the screen.
host_tests='
	# No interleaving, no proof.
	add_up() {
		awk "/: explored [0-9]+ interleavings/ { models++; sum += \$(NF - 3); if (!\$(NF - 3)) none++ }
			END { printf \"%d interleavings in %d models\", sum, models; exit !models || none }" "$1"
	}
	cargo clippy --all-targets -- -D warnings
	cargo test -- --show-output | tee /tmp/log
	explored=$(add_up /tmp/log)
	echo "host: random tests with HOST_SEED=$HOST_SEED"'

host_valgrind='
	# The stacks of loom and those of the threads, of 2 MiB, may lie beside each other: a
	# step from one to the other must not pass for a large frame, whose bytes are new.
	# One after another, on the first thread: its stack is far from those that loom switches
	# to, which valgrind would otherwise take for the same one now and then.
	export RUST_TEST_THREADS=1
	export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --max-stackframe=1000000 --error-exitcode=9"
	LOOM_MAX_PREEMPTIONS=1 cargo test --test models -- --show-output >/tmp/log 2>&1 || {
		cat /tmp/log
		exit 1
	}
	explored=$(add_up /tmp/log)
	grep "^==.* ERROR SUMMARY: 0 errors" /tmp/log
	echo "host: valgrind has watched memory in $explored"'

# The ground free, over POSIX threads.
host_watched='
	for tool in memcheck helgrind; do
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/free/watched $tool" cargo test --test free
	done
	echo "host: valgrind has watched memory and locks of the ground free"'

host_miri='
	if cargo miri --version; then
		cargo miri test --test arithmetic
		echo "host: Miri has run the arithmetic"
	else
		echo "host: Miri was NOT run: $(rustc --version) has no cargo miri here"
	fi'

host_host() {
	in_kept_copy host "$host_begins
		export HOST_SEED=$HOST_SEED
		$host_tests
		echo \"host: explored \$explored\"
		$host_watched
		$host_valgrind
		$host_miri"
}

# Every model, with fewer preemptions.
host_host_quick() {
	in_kept_copy host "$host_begins
		export HOST_SEED=$HOST_SEED LOOM_MAX_PREEMPTIONS=2
		$host_tests
		echo \"host: explored \$explored, with two preemptions at most\"
		$host_watched"
}

# mutants [NAME...]
mutants() {
	in_kept_copy mutants "$host_begins
		mutants/run $* | sed 's/^/host: /'"
}

host_mutants() { mutants; }

# A test each of all that finds mutants, and the defects that cost most.
host_mutants_few() {
	mutants range-wraps-around refusal-is-not-mine release-leaks-the-pin \
		release-waits-for-nobody unpins-after-the-callback no-drain \
		free-array-is-full-too-late free-notification-is-missed
}

host_gpuverbs() {
	in_kept_copy gpuverbs 'cd tests/guest/gpuverbs; cargo test --offline'
}

# host_layers JOB: as check_layers.
host_layers() {
	case $1 in
	gpuverbs) echo base ;;
	*) echo host ;;
	esac
}

# run_host JOB
run_host() {
	local rc=0
	(
		choose_stack "$(host_layers "$1")"
		reported "$1" "host_$1"
	) || rc=1
	sed -n "s/^host: /[$1] /p" "$LAB_CACHE/log/$1.log"
	return "$rc"
}

# key_host JOB: of all that its result depends on.
key_host() {
	choose_stack "$(host_layers "$1")"
	key_of "$1" "$stack" "$(hash_of "$top/src" "$top/tests/host" "$top/tests/guest/gpuverbs" \
		"$lab/nvidia/lab_gpu.h" "$lab"/{host,check}.sh)"
}

host_main() {
	each run_host host mutants gpuverbs
}
