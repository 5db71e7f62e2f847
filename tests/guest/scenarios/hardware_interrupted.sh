# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the tests for hardware, ended at each step by a signal or killed, and some without their terminal
# Gpu: 512
. /lab/hardware_runs.sh
load_neighbours
modprobe nvidia-peermem
modules=$(others)
pair=gpu0-$HCA

# begun STEP: succeeds if the step has begun. ended: succeeds if the run has ended.
begun() { grep -qE "\"is\": \"step\".*\"name\": \"$1\"" "$state"/*/journal; }
ended() { ls "$state"/*/hardware-report.tar.gz; }

# begin STEP: starts a run with this step, and waits until the step has begun. $! is the run then.
begin() {
	local only=(--only "${1##*/}")
	case $1 in
	*/measure | nvidia-peermem/*) ;;
	*) only+=(--no-measure) ;;
	esac
	PATH=/run/double:$PATH sh /opt/hardware/tests/hardware/run --built "$built" "${only[@]}" >/tmp/said 2>&1 &
	wait_for "the step $1" begun "$1"
}

# interrupted STEP: ends the run by a signal in this step.
interrupted() {
	begin "$1"
	kill -TERM $!
	wait $! || true
	check "$1, interrupted: the page says so" page 'ended early: interrupted$'
	as_before "$1, interrupted"
	rm -rf "$state"
}

# killed STEP: kills the run in this step, and has it undone.
killed() {
	begin "$1"
	kill -KILL "$(sed -n 's/.*"is": "supervisor", "pid": \([0-9]*\).*/\1/p' "$state"/*/journal)"
	wait $! || true
	hardware --dry-run >/tmp/said 2>&1 || true
	check "$1, killed: another run is refused" grep -q 'REFUSED: the run in .* has not ended' /tmp/said
	check "$1, killed: it is undone" hardware --undo
	# A short step may have ended before the run was killed.
	case $1 in
	*/freed-meanwhile | */killed) check "$1, killed: the page says so" page "^  $1 \(crashed\)$" ;;
	esac
	as_before "$1, killed, and undone"
	rm -rf "$state"
}

# alone STEP: takes the run's terminal away in this step.
alone() {
	begin "$1"
	kill -HUP $!
	wait_for "the end of the run" ended
	check "$1, without its terminal: it goes on" page '^nv_peer_mem on hardware: ([0-9]+) of \1 steps held$'
	as_before "$1, without its terminal"
	rm -rf "$state"
}

# The steps take turns. The two modes have an odd number of steps each, so each step of a pair is ended
# by a signal in one mode, and killed in the other.
modes='build|take-out|persistent|revocable|nvidia-peermem|dma-buf'
mapfile -t steps < <(hardware --dry-run | sed -nE "s#^  (($modes)(/[^ ]*)?) .*#\1#p")
equal "the steps of the plan" 35 "${#steps[@]}"
for at in "${!steps[@]}"; do
	if [ $((at % 2)) = 0 ]; then interrupted "${steps[at]}"; else killed "${steps[at]}"; fi
done
for step in persistent/load "persistent/$pair/freed-meanwhile" "persistent/$pair/killed"; do
	alone "$step"
done
rmmod nvidia_peermem
