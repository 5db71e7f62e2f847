# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What a registration holds of the kernel's memory, as the kernel's own trace
# sees it: what is allocated in the core's calls into the client, without the
# driver's calls that are made inside of them, and is not freed again.
TRACING=/sys/kernel/tracing

# A probe costs what it measures, so that they are there only while memory is.
prepare_held() {
	mount -t tracefs tracefs "$TRACING" 2>/dev/null || [ -e "$TRACING/trace" ]
	echo 0 >"$TRACING/tracing_on"
	echo 16384 >"$TRACING/buffer_size_kb"
}

set_probes() {
	local op
	for op in acquire get_pages dma_map get_page_size dma_unmap put_pages release; do
		tell_trace "peer_call_$op" traceon traceoff
	done
	for op in get_pages put_pages get_pages_persistent put_pages_persistent dma_map_pages dma_unmap_pages; do
		tell_trace "nvidia_p2p_$op" traceoff traceon
	done
}

clear_probes() {
	local op
	find "$TRACING/events/lab" -name trigger | while read -r op; do
		sed 's/:.*//; s/^/!/' "$op" | grep -v '^!#' >/tmp/triggers || continue
		cat /tmp/triggers >"$op"
	done
	echo >"$TRACING/kprobe_events"
}

# tell_trace FUNCTION AT_ENTRY AT_RETURN
tell_trace() {
	echo "p:lab/in_$1 $1" >>"$TRACING/kprobe_events"
	echo "r:lab/out_$1 $1" >>"$TRACING/kprobe_events"
	echo "$2" >"$TRACING/events/lab/in_$1/trigger"
	echo "$3" >"$TRACING/events/lab/out_$1/trigger"
}

ALLOCATIONS='kmalloc kmem_cache_alloc kfree kmem_cache_free mm_page_alloc mm_page_free mm_page_free_batched'

# watch_allocations 1|0
watch_allocations() {
	local event
	for event in $ALLOCATIONS; do
		echo "$1" >"$TRACING/events/kmem/$event/enable"
	done
}

# held SIZE: bytes. Of small ones, many at once: what several share, such as a page of
# records, is in it.
held() {
	local many=1
	[ "$(bytes "$1")" -gt $((1 << 20)) ] || many=100
	echo >"$TRACING/trace"
	watch_allocations 1
	hold gpuverbs measure --way "$way" --length "$1" --hold --times "$many" >/dev/null
	watch_allocations 0
	awk -v many="$many" -f /lab/bench/held.awk "$TRACING/trace"
	ended_well || fail "holding registrations of $1"
}

# trace_loading COMMAND...: runs it; nanoseconds that the kernel's loading of a
# module took in $loading.
trace_loading() {
	local event
	echo >"$TRACING/trace"
	for event in enter exit; do
		echo 1 >"$TRACING/events/syscalls/sys_${event}_finit_module/enable"
	done
	echo 1 >"$TRACING/tracing_on"
	"$@"
	echo 0 >"$TRACING/tracing_on"
	for event in enter exit; do
		echo 0 >"$TRACING/events/syscalls/sys_${event}_finit_module/enable"
	done
	loading=$(awk '/sys_finit_module\(/ { began = time() } /sys_finit_module ->/ { printf "%d\n", time() - began }
		function time() { match($0, /[0-9]+\.[0-9]+:/); return substr($0, RSTART, RLENGTH - 1) * 1e9 }' "$TRACING/trace")
}
