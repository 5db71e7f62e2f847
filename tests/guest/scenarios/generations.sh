# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module works with every generation of the peer-memory API, built for it
. /lab/server.sh
. /lab/driver.sh
load_gpu
load_rdma
# Tickets that do not fit into 32 bits, or begin at 0 again, after the first few.
turn late_tickets 1

# freed_at POINT EXPECTED COMMAND...: memory that goes while its registration is
# held there. COMMAND tells when that has happened, then the registration goes on.
freed_at() {
	local point=$1 expected=$2 pid
	shift 2
	stop_at "$point"
	echo 1 >"$NVIDIA/inject_hold"
	echo after_get >"$NVIDIA/inject"
	# It also looks for pins that may be gone: only its result counts.
	gpuverbs register --offset 0 --length 1M >/tmp/registered 2>&1 &
	pid=$!
	wait_held "$point"
	echo 0 >"$NVIDIA/inject_hold"
	wait_for "the driver's callback" "$@"
	lift "$point"
	wait "$pid" || true
	equal "freed while held at $point: how the registration ends" "$expected" \
		"$(sed -n 's/^result=//p' /tmp/registered)"
	wait_for "the end of it" at_rest
}

# freed_early GENERATION: memory that goes between acquire and activation.
freed_early() {
	local fired premature
	fired=$(nvidia_count callbacks_fired)
	freed_at map EFAULT nvidia_is callbacks_fired $((fired + 1))
	premature=$(core_count invalidations_premature)
	# Only G2 takes notice before activation, the others keep the client waiting.
	case $1 in
	g2*)
		freed_at driver EINVAL core_is invalidations_premature $((premature + 1))
		;;
	*)
		freed_at driver ok core_is live_waits 1
		;;
	esac
}

# freed_in_get GENERATION: memory that goes inside the driver's call.
freed_in_get() {
	register_losing "$1" in_get_gap EFAULT
	# The callback waits for the call, and then whoever comes first: an error, or
	# revoked at once.
	register_losing "$1" before_get_returns "EFAULT EINVAL ok"
	wait_for "the end of it" at_rest
}

# both_end GENERATION: the driver's callback has found the region when its
# deregistration begins.
both_end() {
	local late
	late=$(core_count invalidations_late)
	echo kthread >"$NVIDIA/free_from"
	register_killed
	stop_at invalidate
	case $1 in g3a) stop_at unmap ;; *) stop_at stop ;; esac
	lift driver
	wait_held invalidate
	case $1 in
	g2*)
		# The callback waits for the ticket, and returns before dma_unmap.
		wait_held stop
		lift invalidate
		wait_for "a callback that waits" core_is live_waits 1
		stop_at unmap
		lift stop
		wait_for "the core's answer" core_is live_invalidations 0
		wait_held unmap
		lift unmap
		;;
	g3a)
		# The callback waits for the lock that dma_unmap and put_pages have.
		wait_held unmap
		lift invalidate
		wait_for "a callback that waits" core_is live_waits 1
		lift unmap
		;;
	g3b)
		# The region is not to be released before the core has answered.
		wait_held stop
		lift stop
		wait_for "the release" in_client release
		lift invalidate
		;;
	esac
	wait_for "the end of both" at_rest
	equal "callback and deregistration at once: the core answered late" $((late + 1)) "$(core_count invalidations_late)"
	echo task >"$NVIDIA/free_from"
}

# try GENERATION COMMAND...: what the module loaded by COMMAND does there.
try() {
	local generation=$1 free ended
	shift
	say "$generation: $*"
	server "$generation"
	"$@" persistent_api_support=1
	check "$generation, pinned: transfer" transfer_seen 0 8M 300001 11 --shift 4096
	check "$generation, pinned: memory stays" gpuverbs revoke --from 0 --to 8M --length 300001 --expect pinned
	unload_module
	"$@" persistent_api_support=0
	check "$generation, revocable: transfer" transfer_seen 0 8M 300001 12 --shift 12345
	ended=$(core_count ended_in_callback)
	for free in to from; do
		check "$generation: $free freed" gpuverbs revoke --from 0 --to 8M --length 300001 --free "$free"
	done
	case $generation in g2*) ended=$((ended + 2)) ;; esac
	equal "$generation: regions that ended inside the callback" "$ended" "$(core_count ended_in_callback)"
	freed_in_get "$generation"
	freed_early "$generation"
	both_end "$generation"
	check "$generation: and then it works" register ok
	unload_module
	wait_for "everything to be given back" at_rest
}

built_for() {
	local generation=$1
	shift
	insmod "/lib/nv_peer_mem/$generation/nv_peer_mem.ko" "$@"
}

# 4.0 has the header of 5.1: nothing is behind the last operation, where 4.1 to 5.0 look.
try g2 built_for g3a
try g2 built_for g2
try g3a built_for g3a
try g3b load_module
try g2 load_module peerdirect_support=1

# Built for today's core: what is a size there is a function for 4.1 to 5.0.
load_module
skipped=$(core_count skipped_clients)
check "g2, without peerdirect_support=1: the core passes the module over" register EFAULT
equal "all its clients" $((skipped + 3)) "$(core_count skipped_clients)"
