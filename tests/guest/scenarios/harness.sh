# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a scenario fails if it leaves anything behind, or if one of its checks fails
# shellcheck disable=SC2016 # lines for another shell
load_gpu
load_rdma

# ends_with ok|"not ok" TEXT COMMAND: runs COMMAND as a scenario that has its own /tmp. Checks the
# result of this scenario.
ends_with() {
	mkdir -p /run/harness
	printf 'last "the scenario around it goes on"\n%s\n' "$3" >/run/harness/line.sh
	# The reports of the inner scenario go to a file, so that its checks do not count here.
	unshare --mount bash -c '
		mount -t tmpfs tmpfs /tmp
		mount --bind /run/harness /lab/scenarios
		exec bash /lab/run line 7>/run/harness/said' </dev/null
	cat /run/harness/said
	check "$2" grep -qx "$1 1 line" /run/harness/said
	for double in "$NVIDIA" "$CORE"; do echo clear >"$double/violations"; done
	know_reports
}

ends_with ok "nothing is wrong" true
ends_with 'not ok' "a check fails" 'check "no" false'
ends_with 'not ok' "a command fails, and others follow" 'false; true'
ends_with 'not ok' "a command does not exist" 'no_such_command; true'
ends_with 'not ok' "a double refuses a setting" 'with layout no_such_layout true; true'
ends_with 'not ok' "a registration ends otherwise" 'gpuverbs register --offset 0 --length 64K --expect ok; true'
ends_with 'not ok' "a value is another one" 'equal "numbers" 1 2'
ends_with 'not ok' "the kernel's log has a report, and then a mark" 'echo "<2>BUG: made up" >/dev/kmsg; mark_log'
for text in 'WARNING: CPU: 0' 'BUG: KASAN: made up' 'INFO: task a:1 blocked for more than 120 seconds' 'watchdog: BUG: soft lockup' \
	'refcount_t: underflow' 'DMA-API: nvidia: made up' 'Call Trace:' 'possible circular locking dependency detected'; do
	check "a report: $text" grep -qE "$REPORTS" <<<"$text"
done

load_module persistent_api_support=0
hold gpuverbs transfer --from 0 --to 8M --length 64K --seed 1 --hold
ends_with 'not ok' "memory stays registered" true
check "it is released" ended_well
echo 'b2_stop_inverted 1' >"$CORE/switch"
ends_with 'not ok' "a contract is broken" 'echo "driver 1" >"$CORE/fail"; gpuverbs register --offset 0 --length 64K --expect ENOMEM'
echo 'b2_stop_inverted 0' >"$CORE/switch"

# A kernel module makes mistakes on purpose, and each checker of the debug kernel must notice its
# mistake.
# reported TEXT WHICH PATTERN: checks that a scenario with the mistake WHICH fails, and that its
# failed check matches PATTERN.
reported() {
	ends_with 'not ok' "$1 is reported" "modprobe mistakes which=$2; rmmod mistakes"
	check "$1: as $3" grep -qE "^  not ok .*$3" /run/harness/said
}
if [ "$MACHINE" = debug ]; then
	# lockdep turns itself off after its first report.
	spoil "checkers have reported"
	reported "memory that is lost" leak 'no memory is lost'
	echo clear >/sys/kernel/debug/kmemleak
	reported "a mapping that is undone twice" unmap 'DMA-API: '
	reported "two locks in two orders" order 'possible circular locking'
fi
