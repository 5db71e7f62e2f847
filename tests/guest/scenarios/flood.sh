# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a user who provokes messages of the module cannot flood the kernel's log
# Clock: instructions, or the scenario would wait for the limits of the log
load_neighbours

# Each of TRIES registrations causes a message. The kernel lets ten messages through in PERIOD
# seconds. A period begins with its first message. When the module is loaded, a new period begins.
TRIES=100
PERIOD=5

# provokes TEXT RESULT PATTERN: lets an unprivileged user make $tries registrations, and checks that
# they end with RESULT. If there is only one try, also checks that the log has PATTERN as the
# reason.
provokes() {
	check "$1: $tries registrations end with $2" as_nobody gpuverbs register --offset 0 --length 64K --cycles "$tries" --expect "$2"
	[ "$tries" -gt 1 ] || expect_log "$1: the log says why" "\] nv_peer_mem: .*$3"
	provoked=$((provoked + tries))
}

# messages: prints the module's messages, each with its time in seconds.
messages() { log_after "$MARK" | sed -n 's/^\[ *\([0-9.]*\)\] nv_peer_mem: /\1 /p'; }

# most_in_a_period: prints the largest number of messages in a period. The kernel's clock advances
# in ticks, so a period may look 0.1 s shorter than PERIOD.
most_in_a_period() {
	messages | awk -v period="$PERIOD" '/callbacks suppressed/ { next }
		!n || $1 >= begin + period - 0.1 { begin = $1; n = 0 }
		++n > most { most = n }
		END { print most + 0 }'
}

# accounted_for: prints the number of messages in the log, plus the number that the log reports as
# suppressed.
accounted_for() { messages | awk '{ sum += /callbacks suppressed/ ? $2 : 1 } END { print sum + 0 }'; }

# flooded CAUSES LAST: CAUSES and LAST are functions that provoke messages. First provokes each
# message of CAUSES once, so that the log has the reason. Then floods the log with CAUSES and LAST.
# Then provokes LAST again in a new period, whose first message counts the suppressed messages.
flooded() {
	mark_log
	provoked=0
	tries=1 "$1"
	tries=$TRIES "$1"
	tries=$TRIES "$2"
	sleep $((PERIOD + 1))
	tries=1 "$2"
	check "$1: at most 10 lines in $PERIOD seconds" test "$(most_in_a_period)" -le 10
	# With -q, grep would end before it has read all lines, and the pipe would fail.
	check "$1: a line says how many are missing" eval 'messages | grep -E "^[^ ]+ [0-9]+ callbacks suppressed" >/dev/null'
	equal "$1: every message is accounted for" "$provoked" "$(accounted_for)"
}

mappings() {
	with dma_mapping_version $((0x30000)) provokes "unknown DMA mapping" EOPNOTSUPP 'DMA mapping has version'
	with dma_entries_short 1 provokes "short DMA mapping" EIO 'mapped 0 pages'
	with_core null_device provokes "no PCI device" EOPNOTSUPP 'not a PCI device'
}
# denied is the last cause, because the module remembers the driver's refusal.
denied() { with topology_denied 1 provokes "a pair that the driver refuses" EOPNOTSUPP 'does not let this RDMA device'; }
load_module
flooded mappings denied
unload_module

page_tables() {
	with page_table_version $((0x30000)) provokes "unknown page table" EOPNOTSUPP 'page table has version'
	with page_size 3 provokes "unknown page size" EOPNOTSUPP 'page size type 3'
	with page_size 0 provokes "short page table" EIO 'pinned 1 pages'
}
not_unpinned() { with fail 'put_pages EIO 1 0' provokes "unpinning fails" ok 'did not unpin'; }
load_module persistent_api_support=0
flooded page_tables not_unpinned
