# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module works with every generation of the peer-memory API, built for it
. /lab/server.sh
. /lab/driver.sh
load_neighbours
# With this switch, most of the core's tickets need more than 32 bits, or begin at 0 again. Only the
# first few tickets are as usual.
turn late_tickets 1

# freed_at POINT EXPECTED COMMAND...: holds a registration at POINT, frees its memory, and waits
# until COMMAND succeeds. Then lets the registration continue, and checks that it ends with
# EXPECTED.
freed_at() {
	local pid
	stop_at "$1"
	echo 1 >"$NVIDIA/inject_hold"
	echo after_get >"$NVIDIA/inject"
	# Only the printed result counts. The exit code does not count, because gpuverbs also checks
	# the pins, and fails if the pins have ended.
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

# freed_early GENERATION: frees memory between acquire and activation.
freed_early() {
	freed_at map EFAULT nvidia_is callbacks_fired $(($(nvidia_count callbacks_fired) + 1))
	# Only G2 notices an invalidation before activation. Later generations let the client wait.
	case $1 in
	g2*) freed_at driver EINVAL core_is invalidations_premature $(($(core_count invalidations_premature) + 1)) ;;
	*) freed_at driver ok core_is live_waits 1 ;;
	esac
}

# both_end GENERATION: lets the driver's callback find the region, and then lets a deregistration
# begin. Checks that the callback and the deregistration both end.
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
		# The callback waits until the core takes the ticket back, and returns before
		# dma_unmap.
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
		# The callback waits for the lock that the core holds while it calls dma_unmap and
		# put_pages.
		wait_held unmap
		lift invalidate
		wait_for "a callback that waits" core_is live_waits 1
		lift unmap
		;;
	g3b)
		# The release must wait until the core has answered.
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

# try GENERATION COMMAND...: checks the module that COMMAND loads on a core of GENERATION.
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
	# The memory is freed inside the driver's call, and the callback waits for the end of the
	# call. Which thread comes first decides whether the registration fails, or succeeds and is
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

# The header of 4.0 is the same as that of 5.1. In the structure of a module that was built with it,
# nothing follows the last operation. Cores from 4.1 to 5.0 read two pointers at that place.
try g2 load_built g3a
try g2 load_built g2
try g3a load_built g3a
try g3b load_module
try g2 load_module peerdirect_support=1

# This module is built for current cores. Its structure has a size at the place where cores from 4.1
# to 5.0 expect a pointer to a function.
load_module
skipped=$(core_count skipped_clients)
check "g2, without peerdirect_support=1: the core passes the module over" register EFAULT
equal "all its clients" $((skipped + 3)) "$(core_count skipped_clients)"
