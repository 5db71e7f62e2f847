# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios with CUDA memory share.

# cuda NAME WORD...: a program of /lab/cuda, whose checks are counted. It has some.
cuda() {
	local word rest rc=0
	python3 -B "/lab/cuda/$1.py" "${@:2}" >/tmp/said 2>&1 || rc=$?
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

# half FILE 0|1: the first or the second 64 KiB of a file.
half() { dd if="$1" bs=64K skip="$2" count=1 status=none; }

# cuda_contents SERVER_SEED CLIENT_SEED: what buffers of perftest_cuda hold at the beginning.
cuda_contents() {
	gpuverbs pattern --seed "$1" --length 131072 >/tmp/server.fill
	gpuverbs pattern --seed "$2" --length 131072 >/tmp/client.fill
}

# perftest_side WHO PROGRAM WORD...: one side of a perftest program, with its buffer in
# CUDA memory: two halves of 64 KiB. What was in it at the end is in /tmp/WHO.dump.
perftest_side() {
	rm -f "/tmp/$1.dump"
	LD_PRELOAD=/usr/local/lib/lab-gpu-contents.so GPU_FILL="/tmp/$1.fill" GPU_DUMP="/tmp/$1.dump" \
		"$2-cuda" -d rxe0 -F -s 65536 --use_cuda=0 "${@:3}" >"/tmp/$1" 2>&1
}
