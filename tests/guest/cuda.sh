# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with CUDA memory.

# cuda NAME WORD...: runs the program NAME of programs.py, and counts its checks. dma_buf NAME
# WORD...: does the same with a program of dma_buf.py.
cuda() { counting programs "$@"; }
dma_buf() { counting dma_buf "$@"; }

# counting FILE NAME WORD...: runs the program NAME of FILE.py, and counts its checks. A program
# without checks fails.
counting() {
	local file=$1 word rest rc=0
	shift
	# The output is written at once, so that the console shows where a program hangs.
	python3 -B "/lab/cuda/$file.py" "$@" 2>&1 | tee /tmp/said || rc=$?
	while read -r word rest; do
		case $word in
		ok) ok "$*: $rest" ;;
		fail) fail "$*: $rest" ;;
		say) say "$rest" ;;
		esac
	done </tmp/said
	check "$*: checks were made" grep -qE '^(ok|fail) ' /tmp/said
	equal "$*: came to its end" 0 "$rc"
}

# pair PROGRAM [OPTION...]: runs server and client of a program of perftest. Each side has its buffer
# in CUDA memory. Succeeds if both sides succeed.
pair() {
	local program="$1-cuda" options=(-d "$HCA" -F -s 65536 -n 20 --use_cuda=0 "${@:2}") pid rc=0
	"$program" "${options[@]}" >/tmp/server 2>&1 &
	pid=$!
	wait_for "the server" sh -c "ss -ltn | grep -q ':18515 '" || return 1
	"$program" "${options[@]}" "$ADDRESS" >/tmp/client 2>&1 || rc=$?
	wait "$pid" || rc=$?
	cat /tmp/server /tmp/client
	return "$rc"
}

# without TEXT EXPECTED COMMAND...: runs COMMAND without the module or the library. Checks that
# COMMAND fails, and that its output matches EXPECTED.
without() {
	local text=$1 expected=$2
	shift 2
	! "$@" >/tmp/out 2>&1 || fail "$text: succeeds"
	cat /tmp/out
	check "$text: $expected" grep -qE "$expected" /tmp/out
}
