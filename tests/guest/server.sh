# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions that control the RDMA core's double. They choose its generation, turn on its bugs, and
# hold tasks at chosen points.

# server GENERATION: sets the core's generation of the API for clients that register later.
server() { echo "$1" >/sys/module/ib_core/parameters/peer_generation; }

# turn SWITCH 0|1: turns SWITCH of the core off or on.
turn() { echo "$1 $2" >"$CORE/switch"; }

# stop_at POINT: makes the core hold each task that reaches POINT. lift POINT: lets these tasks
# continue.
stop_at() { echo "$1 1" >"$CORE/hold"; }
lift() { echo "$1 0" >"$CORE/hold"; }

# held POINT: prints how many tasks are held at POINT.
held() { awk -v point="$1" '$1 == point { print $3 }' "$CORE/hold"; }
is_held() { [ "$(held "$1")" -gt 0 ]; }
wait_held() { wait_for "somebody at $1" is_held "$1"; }

# core_is NAME NUMBER, nvidia_is NAME NUMBER: succeeds if the counter NAME is NUMBER.
core_is() { [ "$(core_count "$1")" = "$2" ]; }
nvidia_is() { [ "$(nvidia_count "$1")" = "$2" ]; }

# in_client OPERATION: succeeds if a task is in this operation of a client.
in_client() { awk -v op="$1" '$2 == op { found = 1 } END { exit !found }' "$CORE/calls"; }

# at_rest: succeeds if no memory is pinned, mapped or registered any more.
at_rest() {
	driver_at_rest && core_is live_umems 0 && core_is live_invalidations 0
}

# register_killed: starts a registration that is held at the point `driver`, and kills its process.
# After `lift driver`, the registration ends first, and then the process.
register_killed() {
	local pid
	stop_at driver
	gpuverbs register --offset 0 --length 1M >/dev/null 2>&1 &
	pid=$!
	wait_held driver
	kill -9 "$pid"
}
