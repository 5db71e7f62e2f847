# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module works with every generation of the peer-memory API, built for it
. /lab/server.sh
. /lab/driver.sh
load_neighbours
# Tickets that do not fit into 32 bits, or begin at 0 again, after the first few.
turn late_tickets 1

# freed_at POINT EXPECTED COMMAND...: memory that goes while its registration is
# held there. COMMAND tells when that has happened, then the registration goes on.
freed_at() {
	local pid
	stop_at "$1"
	echo 1 >"$NVIDIA/inject_hold"
	echo after_get >"$NVIDIA/inject"
	# It also looks for pins that may be gone: only its result counts.
	gpuverbs register --offset 0 --length 1M >/tmp/registered 2>&1 &
	pid=$!
	wait_held "$1"
	echo 0 >"$NVIDIA/inject_hold"
	wait_for "the driver's callback" "${@:3}"
	lift "$1"
	wait "$pid" || true
	equal "freed while held at $1: how the registration ends" "$2" "$(sed -n 's/^result=//p' /tmp/registered)"
	wait_for "the end of it" at_rest
}

# freed_early GENERATION: memory that goes between acquire and activation.
freed_early() {
	freed_at map EFAULT nvidia_is callbacks_fired $(($(nvidia_count callbacks_fired) + 1))
	# Only G2 takes notice before activation, the others keep the client waiting.
	case $1 in
	g2*) freed_at driver EINVAL core_is invalidations_premature $(($(core_count invalidations_premature) + 1)) ;;
	*) freed_at driver ok core_is live_waits 1 ;;
	esac
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
	check "$generation, pinned: memory stays" revoke --expect pinned
	unload_module
	"$@" persistent_api_support=0
	check "$generation, revocable: transfer" transfer_seen 0 8M 300001 12 --shift 12345
	ended=$(core_count ended_in_callback)
	for free in to from; do
		check "$generation: $free freed" revoke --free "$free"
	done
	case $generation in g2*) ended=$((ended + 2)) ;; esac
	equal "$generation: regions that ended inside the callback" "$ended" "$(core_count ended_in_callback)"
	# Inside the driver's call. The callback waits for it, and then whoever comes first: an error, or
	# revoked at once.
	register_losing "$generation" in_get_gap EFAULT
	register_losing "$generation" before_get_returns "EFAULT EINVAL ok"
	wait_for "the end of it" at_rest
	freed_early "$generation"
	both_end "$generation"
	registers "$generation: and then it works" ok
	unload_module
	wait_for "everything to be given back" at_rest
}

# 4.0 has the header of 5.1: nothing is behind the last operation, where 4.1 to 5.0 look.
try g2 load_built g3a
try g2 load_built g2
try g3a load_built g3a
try g3b load_module
try g2 load_module peerdirect_support=1

# Built for today's core: what is a size there is a function for 4.1 to 5.0.
load_module
skipped=$(core_count skipped_clients)
check "g2, without peerdirect_support=1: the core passes the module over" register EFAULT
equal "all its clients" $((skipped + 3)) "$(core_count skipped_clients)"
