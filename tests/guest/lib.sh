# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios are written with: loading modules, asking questions of the
# kernel and of the host, and checks that count.
set -uo pipefail

NVIDIA=/sys/kernel/debug/nvidia_lab
CORE=/sys/kernel/debug/peer_mem_lab
PEERS=/sys/kernel/mm/memory_peers
FAILURES=/tmp/failures

failures=0

# report WORD TEXT: one line to the host (tests/lab/boot.sh reads it).
report() {
	printf '%s\n' "$*" >&7
	printf '### %s\n' "$*"
}

say() { report say "$*"; }

# row NAME | VALUE: a line of the demo's table.
row() { report row "$*"; }

ok() { report ok "$*"; }

fail() {
	printf '%s\n' "$*" >>"$FAILURES"
	report fail "$*"
}

# check TEXT COMMAND...: counts COMMAND's success.
check() {
	local text=$1
	shift
	if "$@"; then ok "$text"; else fail "$text (failed: $*)"; fi
}

# equal TEXT EXPECTED GOT
equal() {
	if [ "$2" = "$3" ]; then ok "$1"; else fail "$1: expected '$2', got '$3'"; fi
}

# ask QUESTION...: the host's answer, one line.
ask() {
	local answer
	report ask "$*" >&2
	IFS= read -r answer <&7
	printf '%s\n' "$answer"
}

# value FILE NAME: the number on the line "NAME number" of a counters file.
value() { sed -n "s/^$2 //p" "$1/counters"; }

nvidia_count() { value "$NVIDIA" "$1"; }
core_count() { value "$CORE" "$1"; }

# wait_for TEXT COMMAND...: polls, and gives up after a minute of guest time.
wait_for() {
	local text=$1 tries=600
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || {
			fail "waited in vain for $text"
			return 1
		}
		sleep 0.1
	done
}

rdma_device() { ls /sys/class/infiniband | head -n 1; }

load_gpu() {
	modprobe nvidia "$@"
	wait_for "the GPU" test -c /dev/nvidia-lab
}

# The RDMA core and a software HCA over the PCI network card.
load_rdma() {
	local net
	modprobe e1000e
	modprobe ib_uverbs
	modprobe rdma_rxe
	net=$(basename "$(dirname "$(grep -l 0x8086 /sys/class/net/*/device/vendor)")" | head -n 1)
	net=$(basename "$(readlink -f /sys/class/net/*/device/.. | head -n 1)")
	net=$(ls -d /sys/class/net/*/device | head -n 1 | cut -d/ -f5)
	ip address add 192.168.7.1/24 dev "$net"
	ip link set "$net" up
	rdma link add rxe0 type rxe netdev "$net"
	# An e1000e takes two seconds to find its link.
	wait_for "the RDMA link" sh -c 'rdma link show | grep -q "state ACTIVE"'
}

load_module() { modprobe nv_peer_mem "$@"; }

unload_module() { rmmod nv_peer_mem; }

load_all() {
	load_gpu
	load_rdma
	load_module
}

# pair SERVER_OPTIONS CLIENT_OPTIONS PROGRAM...: runs both sides of a perftest
# program on this machine, each with its own options; the client's output is
# left in /tmp/client.
pair() {
	local server_options=$1 client_options=$2 pid
	shift 2
	# shellcheck disable=SC2086 # lists of options
	"$@" $server_options >/tmp/server 2>&1 &
	pid=$!
	wait_for "the server of $1" sh -c 'ss -ltn | grep -q ":18515 "' || {
		cat /tmp/server
		kill "$pid"
		return 1
	}
	# shellcheck disable=SC2086
	"$@" $client_options 192.168.7.1 >/tmp/client 2>&1
	local rc=$?
	wait "$pid" || rc=$?
	[ "$rc" = 0 ] || cat /tmp/server /tmp/client
	return "$rc"
}

# Gauges that are not zero, as "name=value" words.
live_gauges() {
	[ ! -e "$1/counters" ] || awk '/^live_/ && $2 != 0 && $1 !~ /^live_(clients)$/ { print $1 "=" $2 }' "$1/counters"
}

# Nothing left, nothing violated, nothing in the log: at the end of every scenario.
check_clean() {
	local double
	failures=$(cat "$FAILURES" 2>/dev/null | wc -l)
	for double in "$NVIDIA" "$CORE"; do
		[ -e "$double/counters" ] || continue
		equal "no contract violation in $(basename "$double")" '' "$(cat "$double/violations")"
		equal "nothing left in $(basename "$double")" '' "$(live_gauges "$double" | paste -sd' ')"
	done
	equal "no warning in the kernel's log" '' "$(dmesg | grep -E 'WARNING:|BUG:|Oops|general protection|rcu:.*stall|Call Trace|refcount_t' | head -n 3 || true)"
	failures=$(cat "$FAILURES" 2>/dev/null | wc -l)
}
