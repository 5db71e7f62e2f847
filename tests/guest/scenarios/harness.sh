# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: whatever a scenario leaves behind, or fails at, does fail it
# All: check-harness shows the same for the lab's own side
# shellcheck disable=SC2016 # lines for another shell
# Own guest: it runs scenarios itself
load_gpu
load_rdma

# ends_with STATUS TEXT COMMAND: a scenario of that one line, with a /tmp of its own.
ends_with() {
	mkdir -p /run/harness
	printf '# Own guest: yes\n%s\n' "$3" >/run/harness/line.sh
	# Its checks are not this scenario's: what it reports goes to a file.
	unshare --mount bash -c '
		mount -t tmpfs tmpfs /tmp
		mount --bind /run/harness /lab/scenarios
		exec bash /lab/run line 7>/run/harness/said' </dev/null
	cat /run/harness/said
	check "$2" grep -qE "^end $1 [1-9]" /run/harness/said
	for double in "$NVIDIA" "$CORE"; do echo clear >"$double/violations"; done
	know_reports
}

ends_with 0 "nothing is wrong" true
ends_with 1 "a check fails" 'check "no" false'
ends_with 1 "a command fails" false
ends_with 1 "a value is another one" 'equal "numbers" 1 2'
ends_with 1 "the kernel's log has a report, and then a mark" 'echo "<2>BUG: made up" >/dev/kmsg; mark_log'
for text in 'WARNING: CPU: 0' 'BUG: KASAN: made up' 'INFO: task a:1 blocked for more than 120 seconds' 'watchdog: BUG: soft lockup' \
	'refcount_t: underflow' 'DMA-API: nvidia: made up' 'Call Trace:' 'possible circular locking dependency detected'; do
	check "a report: $text" grep -qE "$REPORTS" <<<"$text"
done

load_module persistent_api_support=0
hold gpuverbs transfer --from 0 --to 8M --length 64K --seed 1 --hold
ends_with 1 "memory stays registered" true
check "it is released" ended_well
echo 'b2_stop_inverted 1' >"$CORE/switch"
ends_with 1 "a contract is broken" 'echo "driver 1" >"$CORE/fail"; gpuverbs register --offset 0 --length 64K --expect ENOMEM'
echo 'b2_stop_inverted 0' >"$CORE/switch"
