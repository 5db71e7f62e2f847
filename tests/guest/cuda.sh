# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios with CUDA memory share.

# cuda NAME WORD...: a program of the past, whose checks are counted. It has some.
cuda() {
	local word rest rc=0
	python3 -B /lab/cuda/programs.py "$@" >/tmp/said 2>&1 || rc=$?
	cat /tmp/said
	while read -r word rest; do
		case $word in
		ok) ok "$*: $rest" ;;
		fail) fail "$*: $rest" ;;
		esac
	done </tmp/said
	check "$*: checks were made" grep -qE '^(ok|fail) ' /tmp/said
	equal "$*: came to its end" 0 "$rc"
}

# without TEXT EXPECTED COMMAND...: without what it needs a command fails, and says this.
without() {
	local text=$1 expected=$2
	shift 2
	! "$@" >/tmp/out 2>&1 || fail "$text: succeeds"
	cat /tmp/out
	check "$text: $expected" grep -qE "$expected" /tmp/out
}
