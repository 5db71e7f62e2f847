# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows that a run fails whenever it should: conversations with guests that are not
# there, of which all but the first must end badly. What a guest itself must notice
# is in tests/guest/scenarios/harness.sh.

# conversation LINE...: what a guest says before its machine goes off. The words
# `hang`, `panic` and `restart` are things that it does.
conversation() {
	local run rc=0 pid machine_is=plain scenario_label=harness
	new_run harness
	: >"$run/console"
	(
		exec >"$run/lab.out"
		for line; do
			case $line in
			hang) read -rt 60 <> <(:) || true ;;
			panic) echo '[ 1.0] Kernel panic - not syncing' >>"$run/console" ;;
			restart) echo '[ 1.0] reboot: Restarting system' >>"$run/console" ;;
			*) printf '%s\n' "$line" ;;
			esac
		done
	) &
	pid=$!
	LAB_TIMEOUT=2 converse >/dev/null || rc=$?
	kill "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	heard=$(paste -sd';' "$run/said")
	rm -rf "$run"
	return "$rc"
}

# ends STATUS TEXT LINE...: how a conversation must end.
ends() {
	local rc=0 heard
	conversation "${@:3}" || rc=$?
	[ "$rc" = "$1" ] || {
		printf 'harness: %s: ended with %s instead of %s: %s\n' "$2" "$rc" "$1" "$heard"
		return 1
	}
	printf 'test result: ok. 1 passed: %s\n' "$2"
}

check_harness() {
	local failed=0
	ends 0 "all is well" 'ok a' 'ok b' 'end 0 2' || failed=1
	ends 1 "a check fails" 'ok a' 'fail b' 'end 1 2' || failed=1
	ends 1 "the scenario stops" 'ok a' 'end 1 1' || failed=1
	ends 1 "a line is lost" 'ok a' 'end 0 2' || failed=1
	ends 1 "a line is heard that nobody counted" 'ok a' 'ok b' 'end 0 1' || failed=1
	ends 1 "the guest goes off in the middle" 'ok a' || failed=1
	ends 1 "the guest hangs" 'ok a' hang || failed=1
	ends 1 "the guest panics" 'ok a' panic || failed=1
	ends 1 "it restarts though nobody told it" 'ok a' restart || failed=1
	ends 2 "it restarts as announced" 'ok a' 'reboot 1' restart || failed=1
	ends 1 "it panics instead of the restart" 'ok a' 'reboot 1' panic || failed=1
	ends 1 "it panics and restarts" 'ok a' 'reboot 1' panic restart || failed=1
	ends 1 "it never says how many" 'ok a' 'end 0' || failed=1
	return "$failed"
}
