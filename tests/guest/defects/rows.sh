# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each function row_... reproduces one defect of earlier modules. If the module $MODULE has that
# defect, the module shows it. docs/defects.md contains the table of defects.
#
# `try ROW` runs such a function, and sets $seen to a list with a word for each problem. A problem
# is found by the row itself, or is a violation that the doubles have recorded, an object that
# remains, or a complaint of the kernel.
#
# In both modules, the core asks the revocable client first. If a row needs the persistent client,
# the row makes the RDMA device say that it cannot revoke.

. /lab/server.sh

saw() { seen+="${seen:+ }$*"; }

# ---- steps of a verbs client (steps.c) -------------------------------------

start_steps() { hold_from ready verbs-steps; }

say_step() { { echo "$*" >&"$to_held"; } 2>/dev/null || true; }

# hear_step: sets $answer to the client's answer, or to "died" if the client has ended.
hear_step() { read -rt 60 -u "$from_held" answer || answer=died; }

# step WORDS...: sends a step to the client and waits for the answer.
step() {
	say_step "$*"
	hear_step
}

# take WORDS...: sends a step that must succeed, because the row cannot reach its defect otherwise.
take() {
	step "$@"
	[ "$answer" = ok ] || { saw "$1:$answer" && return 1; }
}

# registered: starts a client that registers a megabyte. Sets $growth to the number of pins that
# this registration has made.
registered() {
	start_steps
	take alloc 0 0 0x100000
	grown calls_nvidia_p2p_get_pages take reg 0
}

end_steps() {
	[ -z "$held" ] || ended_well || saw steps_failed
	held=
}

# ---- one row ---------------------------------------------------------------

# reset_doubles restores these defaults of the doubles' knobs after each row.
KNOBS='bar1_bytes page_table_version inject_wait_ms reuse'
declare -A at_rest=()
for knob in $KNOBS; do at_rest[$knob]=$(cat "$NVIDIA/$knob"); done
for knob in switch fail hold; do at_rest[$knob]=$(sed 's/ .*/ 0/' "$CORE/$knob"); done

set_knob() { echo "$2" >"$NVIDIA/$1"; }

reset_doubles() {
	local knob
	for knob in $KNOBS; do set_knob "$knob" "${at_rest[$knob]}"; done
	for knob in switch fail hold; do echo "${at_rest[$knob]}" >"$CORE/$knob"; done
	echo none >"$NVIDIA/inject"
	echo clear >"$NVIDIA/fail"
	for double in "$NVIDIA" "$CORE"; do echo clear >"$double/violations"; done
	server g3b
}

load_it() {
	case $MODULE in
	nv_peer_mem) modprobe nv_peer_mem persistent_api_support=0 "$@" ;;
	*) modprobe "$MODULE" "$@" ;;
	esac
}

in_sysfs=/sys/module/${MODULE//-/_}
loaded() { [ -e "$in_sysfs" ]; }
unload_it() { ! loaded || rmmod "$MODULE" 2>/dev/null; }

# load_for GENERATION WORDS...: loads the module again, for a core of GENERATION.
load_for() {
	unload_it
	server "$1"
	load_it "${@:2}"
}

# counters INTO: stores the counters of both doubles and the number of the module's users in the
# array INTO. The function starts no program, because starting a program takes long in a guest.
counters() {
	local -n into=$1
	local double name value
	for double in "$NVIDIA" "$CORE"; do
		while read -r name value; do into["$name"]=$value; done <"$double/counters"
	done
	! loaded || into[live_users]=$(<"$in_sysfs/refcnt")
}

# left_by_row: prints the objects that this row has left. Objects that earlier rows have left do not
# count.
left_by_row() {
	local name
	local -A now=()
	counters now
	for name in "${!now[@]}"; do
		[[ $name != live_* || $name = live_clients ]] || [ "${now[$name]}" -le "${before[$name]-0}" ] || echo "left:${name#live_}"
	done
}

# log_of_row: prints the part of the kernel's log that begins with this row.
log_of_row() { log_after "defects: row $row_name begins"; }

# complaints_of_row: prints the kernel's complaints. Also prints a word if an address was read from
# freed memory, which the simulated driver fills with 0x6b.
complaints_of_row() {
	log_of_row >/tmp/row_log
	grep -oE "KASAN: [a-z-]+|$REPORTS" /tmp/row_log | tr ' ' _ | sort -u
	! grep -q "detected invalid context" /tmp/row_log || echo freed_context
	! grep -qE "size_id=$((0x6b6b6b6b))" /tmp/row_log || echo read_freed_memory
}

# rows: prints the names of the rows. If a row needs the checkers of the debug kernel, its name is
# printed only in the debug kernel.
rows() {
	compgen -A function row_
	[ "$MACHINE" != debug ] || compgen -A function debug_row_
}

# try ROW: runs a row, and sets $seen and $row_name.
try() {
	local -A before=()
	local tries=50 word
	row_name=${1#*row_} seen='' held=''
	loaded || load_it
	counters before
	echo "defects: row $row_name begins" >/dev/kmsg
	"$1"
	end_steps
	until [ -z "$(left_by_row)" ] || [ $((tries -= 1)) = 0 ]; do sleep 0.1; done
	for word in $(violations "$NVIDIA" "$CORE" | cut -d' ' -f1) $(left_by_row) $(complaints_of_row); do
		saw "$word"
	done
	reset_doubles
}

# grown COUNTER COMMAND...: sets $growth to the number by which COMMAND raises COUNTER.
grown() {
	local -A earlier=() later=()
	counters earlier
	"${@:2}"
	counters later
	growth=$((later[$1] - earlier[$1]))
}

# happened COUNTER: reports a problem unless COUNTER has grown by one in this row.
happened() {
	local -A now=()
	counters now
	[ $((now[$1] - before[$1])) = 1 ] || saw "$1:$((now[$1] - before[$1]))"
}

# registers RESULT...: reports a problem unless a registration ends with one of the RESULTs.
registers() {
	local result
	result=$(gpuverbs register --offset 0 --length 1M 2>/dev/null | sed -n 's/^result=//p')
	case " $* " in *" $result "*) ;; *) saw "errno:${result:-died}" ;; esac
}

# ---- the driver takes memory back ------------------------------------------

# The driver calls the callback after get_pages and before dma_map.
row_freed_before_dma_map() {
	registered
	take dereg 0
	end_steps
	set_knob inject_wait_ms 2000
	echo "before_get_returns $growth" >"$NVIDIA/inject"
	registers ok EFAULT
	happened injected_before_get_returns
}

# The driver calls the callback while it is inside the client's dma_map, and reads the page table
# that dma_map has passed to it.
row_freed_in_dma_map() {
	echo in_dma_map >"$NVIDIA/inject"
	registers ok EFAULT
	happened injected_in_dma_map
}

# free_in_deregistration: frees memory while a thread is held at the start of its deregistration.
free_in_deregistration() {
	stop_at stop
	registered
	step '&dereg 0'
	wait_held stop
	take free 0
	happened callbacks_fired
}

# The driver calls the callback after another thread has begun to deregister.
row_freed_while_deregistering() {
	free_in_deregistration
	lift stop
	take join
}

# The core is still revoking a region when another thread deregisters it. The driver does not let
# this thread unpin, so `release` must wait for the end of the revocation.
row_released_while_revoking() {
	local releases
	releases=$(core_count calls_release)
	registered
	echo 'put_pages ENOMEM 1' >"$NVIDIA/fail"
	stop_at invalidate
	step '&free 0'
	wait_held invalidate
	say_step dereg 0
	wait_for "the release" released_since "$releases"
	lift invalidate
	hear_step
	[ "$answer" = ok ] || saw "dereg:$answer"
	take join
	happened callbacks_fired
}

# released_since COUNT: succeeds if more than COUNT releases have returned, or one is under way.
released_since() { [ "$(core_count calls_release)" -gt "$1" ] || in_client release; }

# As in row_freed_while_deregistering, memory is freed while a thread deregisters. In addition, the
# page table of another registration gets the address of the freed table before the thread
# continues. The other registration must keep its pin.
row_address_used_again() {
	set_knob reuse 1
	free_in_deregistration
	take alloc 1 0x800000 0x100000
	take reg 1
	lift stop
	take join
	[ "$(nvidia_count live_pins)" = 1 ] || saw pin_lost
	take dereg 1
}

# deregistered_in_child COMMAND...: lets a child end its parent's registration, and then runs
# COMMAND. The driver finds no pin of the child, but reports success. The driver will therefore
# still call the callback.
deregistered_in_child() {
	hold gpuverbs inherit --offset 0 --length 1M --steps heir-dereg,hold,owner-free,hold || saw not_deregistered
	"$@"
	go_on
	happened callbacks_fired
}

row_deregistered_by_child() { deregistered_in_child true; }
row_unloaded_after_child() { deregistered_in_child unload_it; }

# refused_to_unpin COMMAND...: makes the driver refuse to unpin, and then runs COMMAND. The driver
# will therefore still call the callback.
refused_to_unpin() {
	echo 'put_pages ENOMEM 1' >"$NVIDIA/fail"
	start_steps
	take alloc 0 0 0x100000
	# If a module pins twice, the refusal hits its first pin, so the registration fails.
	! take reg 0 || take dereg 0
	happened failures_injected
	"$@"
	take free 0
}

row_unpin_refused() { refused_to_unpin true; }
row_unloaded_after_unpin_refused() { refused_to_unpin unload_it; }

# Cores before OFED 5.4-3 hold the region's lock while they call put_pages. If put_pages waits for
# the driver's lock, there is a deadlock, because the callback holds the driver's lock and waits for
# the region's lock.
row_unpinned_under_lock() {
	load_for g3a
	set_knob inject_wait_ms 2000
	registered
	echo before_put >"$NVIDIA/inject"
	take dereg 0
	happened injected_before_put
}

# Some cores take the first address of the list as the address of the first page of the range. A GPU
# page is larger than such a page, so the list must not begin at the beginning of the GPU page.
row_list_not_trimmed() {
	turn b7_no_trim 1
	gpuverbs transfer --from 0 --to 8M --length 64K --shift 4096 --seed 1 >/dev/null 2>&1 || saw bytes
}

# ---- defects that only checkers show -----------------------------------------------

# MLNX_OFED 4.9 deregisters during the revocation, so it calls `release` before the callback
# returns.
debug_row_released_in_callback() {
	load_for g2 peerdirect_support=1
	registered
	take free 0
	happened ended_in_callback
	take dereg 0
	end_steps
	unload_it
}

# ---- defects that cost time or memory ---------------------------------------------------------

row_pinned_twice() {
	registered
	take dereg 0
	[ "$growth" = 1 ] || saw "pins:$growth"
}

row_entry_for_each_page() {
	local entries
	entries=$(peer nv_mem num_reg_pages)
	registers ok
	entries=$(($(peer nv_mem num_reg_pages) - entries))
	[ "$entries" = 1 ] || saw "entries:$entries"
}

# A core that copies from registered memory takes the entries of the scatterlist for pages. GPU
# memory has no pages, so no entry may count as a page.
row_entries_look_like_pages() {
	grown tables_without_pages registers ok
	[ "$growth" = 0 ] || saw "tables_without_pages:$growth"
}

# ---- wrong errors for the user -------------------------------------------------

row_no_room_in_bar1() {
	set_knob bar1_bytes 2000000
	registers ENOMEM
}

row_unknown_page_table() {
	set_knob page_table_version $((0x30000))
	registers EOPNOTSUPP
}

row_no_dma_device() {
	turn null_device 1
	registers EOPNOTSUPP
}

# ENOTSUPP is only for use inside the kernel, so it must not reach the user.
row_persistent_not_supported() {
	turn no_inval_supp 1
	echo 'get_pages_persistent ENOTSUPP 1' >"$NVIDIA/fail"
	registers EFAULT EOPNOTSUPP
	happened failures_injected
}

# ---- wrong messages for the administrator ----------------------------------------

row_wrong_parameter() {
	unload_it
	! load_it peerdirect_support=7 2>/dev/null || saw accepted
	grep -qE 'peerdirect_support.* 0 (and|or) 1\b' <<<"$(log_of_row)" || saw no_right_values
}

row_name_taken() {
	local other
	unload_it
	case $MODULE in nv_peer_mem) other=nvidia-peermem ;; *) other=nv_peer_mem ;; esac
	modprobe "$other" || saw "no_$other"
	! load_it 2>/dev/null || saw accepted
	grep -qE "modprobe -r (nvidia_peermem|nv_peer_mem)" <<<"$(log_of_row)" || saw no_cause
	rmmod "$other"
}

# A user whose registrations fail must not fill the log. At most ten lines are allowed in each
# period of five seconds. The scenario flood also checks when the periods begin.
row_log_flood() {
	local lines most
	turn null_device 1
	gpuverbs register --offset 0 --length 64K --cycles 200 --expect EOPNOTSUPP,EINVAL >/dev/null 2>&1 ||
		saw not_refused
	# The rate limit uses a clock that is a little ahead of the times in the log, so 0.1 s is added
	# to the measured time. The kernel's own line about omitted lines is not counted.
	read -r lines most <<<"$(log_of_row | awk -F'[][]' '
		/callbacks suppressed/ { next }
		/nv_peer_mem: |nvidia-peermem / { if (!n++) first = $2; last = $2 }
		END { print n + 0, 10 * (1 + int((last - first + 0.1) / 5)) }')"
	[ "$lines" -gt 0 ] || saw silent
	[ "$lines" -le "$most" ] || saw "flood:$lines"
}
