# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck disable=SC2016 # commands for the shell inside the layers
#
# The parts that need no kernel, tested by cargo: the module's own files
# (tests/host), that their tests can fail (its mutants), and the verbs client.

. "$lab/check.sh"

HOST_CRATES=(tests/host tests/host/mutants tests/guest/gpuverbs)

# Random tests repeat what they did with the same seed.
HOST_SEED=${HOST_SEED:-0x$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}

# The lines that begin with "host: " are shown on the screen. A lock file that
# cargo left in the checkout names other versions than Debian has.
host_command() {
	case $1 in
	tests/host)
		printf '%s\n' "export HOST_SEED=$HOST_SEED" '
		cd tests/host
		rm -f Cargo.lock
		# Newer than what the layer was compiled from, or cargo takes that.
		touch models/main.rs arithmetic/main.rs
		cargo clippy --all-targets -- -D warnings
		add_up() {
			awk "/: explored [0-9]+ interleavings/ { models++; sum += \$(NF - 3) }
				END { printf \"%d interleavings in %d models\", sum, models }" "$1"
		}
		cargo test -- --show-output | tee /tmp/log
		# No model means no proof.
		grep -q ": explored [1-9][0-9]* interleavings" /tmp/log
		echo "host: explored $(add_up /tmp/log)"
		# The stacks of loom and those of the threads, of 2 MiB, may lie beside each other: a
		# step from one to the other must not pass for a large frame, whose bytes are new.
		export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --max-stackframe=1000000 --error-exitcode=9"
		LOOM_MAX_PREEMPTIONS=1 cargo test --test models -- --show-output >/tmp/log 2>&1 || {
			cat /tmp/log
			exit 1
		}
		echo "host: valgrind has watched memory in $(add_up /tmp/log)"
		echo "host: random tests with HOST_SEED=$HOST_SEED"
		if cargo miri --version; then
			cargo miri test --test arithmetic
			echo "host: Miri has run the arithmetic"
		else
			echo "host: Miri was NOT run: $(rustc --version) has no cargo miri here"
		fi'
		;;
	tests/host/mutants)
		printf '%s\n' 'rm -f tests/host/Cargo.lock
		export CARGO_TARGET_DIR=/var/cache/host-target
		tests/host/mutants/run | sed "s/^/host: /"'
		;;
	*)
		printf '%s\n' "cd $1; cargo test --offline"
		;;
	esac
}

# run_host CRATE: cargo's tests of one crate.
run_host() {
	# The copy is made in the layers for the host; it knows no kernel.
	local stack=$host_stack kver='' kseries='' rc=0
	local name=tests-${1#tests/}
	name=${name//\//-}
	reported "$name" in_copy "$name" "$(host_command "$1")" || rc=1
	sed -n "s/^host: /[$name] /p" "$LAB_CACHE/log/$name.log"
	return "$rc"
}

# key_host JOB: of all that its result depends on.
key_host() {
	choose_stack "$(host_layers "$1")"
	key_of "$stack" "$(hash_of "$top")"
}

host_main() {
	hosttools_layer
	each run_host "${HOST_CRATES[@]}"
}
