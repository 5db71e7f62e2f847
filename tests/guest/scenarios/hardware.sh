# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the tests for hardware, on the simulated GPU and driver: every step holds, and everything is as before
# Gpu: 512
load_neighbours
modprobe nvidia-peermem
state=/var/lib/nv_peer_mem-hardware
built=/run/built
mkdir -m 700 "$built"
cp /opt/hardware/hardware-client "$built"
for module in nv_peer_mem nv_peer_mem_callback; do cp "$(modinfo -n $module)" "$built"; done

# others: prints the loaded modules without the one that stays.
others() { lsmod | awk '$1 != "nv_peer_mem_callback" { print $1 }' | sort; }
modules=$(others)

# hardware WORD...: runs the tests for hardware. as_before TEXT: checks that the modules are those of
# before, and that nothing is left.
# shellcheck disable=SC2120 # also called by eval
hardware() { sh /opt/hardware/tests/hardware/run --built "$built" "$@"; }
as_before() {
	equal "$1: the modules are as before" "$modules" "$(others)"
	nothing_left "$1"
}

# begun STEP: succeeds if the step has begun. ended: succeeds if the run has ended.
begun() { grep -qE "\"is\": \"step\".*\"name\": \"$1\"" "$state"/*/journal; }
ended() { ls "$state"/*/hardware-report.tar.gz; }

# page PATTERN: succeeds if a line of the page matches PATTERN.
page() { grep -qE "$1" "$state"/*/page.txt; }

check "only looking" hardware --dry-run
check "has written nothing" test ! -e "$state"

rc=0
# shellcheck disable=SC2119
hardware >/tmp/said 2>&1 || rc=$?
cat /tmp/said
equal "exit code" 0 "$rc"
check "every step that was tried held" page '^nv_peer_mem on hardware: ([0-9]+) of \1 steps held$'
check "the kernel's log was read" eval "! page 'log since this step cannot be read'"
check "an archive for others" tar -tzf "$(echo "$state"/*/hardware-report.tar.gz)"
as_before "after all steps"

# Two clients as on two machines: the double of ssh stays on this one.
mkdir /run/double
printf '#!/bin/sh\nshift 5\nexec sh -c "$*"\n' >/run/double/ssh
chmod 755 /run/double/ssh
rm -rf "$state"
PATH=/run/double:$PATH check "a peer" hardware --no-measure --peer other --only peer-transfers --only peer-killed
check "the steps with the peer were run" page "^  revocable/gpu0-$HCA/peer-killed: 2 checks"
as_before "after the steps with a peer"

# The steps notice what the driver does wrong.
rm -rf "$state"
for step in sizes freed many; do
	with fail 'get_pages_persistent EBUSY 1' check "$step notices a pin that fails" \
		eval "! hardware --no-measure --only $step >/tmp/said 2>&1"
	check "$step is the one that did not hold" page "^  persistent/gpu0-$HCA/$step \(failed\)$"
	rm -rf "$state"
done
as_before "after pins that failed"

# A run that is interrupted in mid-transfer, one that loses its terminal, and one that is killed.
step="persistent/gpu0-$HCA/freed-meanwhile"
# begin: starts a run with one step, and waits until the step has begun.
begin() {
	sh /opt/hardware/tests/hardware/run --built "$built" --no-measure --only "${step##*/}" >/tmp/said 2>&1 &
	wait_for "the step" begun "$step"
}
begin
kill -TERM $!
wait $! || true
check "interrupted: the page says so" page 'ended early: interrupted$'
as_before "interrupted"
rm -rf "$state"

begin
kill -HUP $!
wait_for "the end of the run" ended
check "without its terminal it goes on" page '^nv_peer_mem on hardware: ([0-9]+) of \1 steps held$'
as_before "without its terminal"
rm -rf "$state"

begin
kill -KILL "$(sed -n 's/.*"is": "supervisor", "pid": \([0-9]*\).*/\1/p' "$state"/*/journal)"
wait $! || true
check "killed: another run is refused" eval "! hardware --dry-run >/tmp/said 2>&1"
check "killed: it is undone" hardware --undo
check "killed: the page names the step" page "^  $step \(crashed\)$"
as_before "killed, and undone"
rm -rf "$state"
rmmod nvidia_peermem
