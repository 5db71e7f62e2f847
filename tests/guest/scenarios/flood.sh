# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a user who provokes messages of the module cannot flood the kernel's log
# Clock: instructions, or it would wait for the limits of that log for a minute
load_gpu
load_rdma

# Each of them is a reason for a line in the log.
TRIES=300

# The kernel's limit counts periods from their first message on. Between two
# floods lies the first message of a period: the last one counted for the flood
# before it and the first one for the flood after it.
PERIOD=5

# tried TEXT RESULT: an unprivileged user's registrations that end like that.
tried() {
	check "$1: $TRIES registrations end with $2" \
		setpriv --reuid 65534 --regid 65534 --clear-groups -- \
		gpuverbs register --offset 0 --length 64K --cycles "$TRIES" --expect "$2"
}

# The module's messages after the first $seen, with the time in seconds in front.
all_messages() { dmesg | sed -n 's/^\[ *\([0-9.]*\)\] nv_peer_mem: /\1 /p'; }
messages() { all_messages | tail -n "+$((seen + 1))"; }

# The kernel's clock ticks: a period that seems a little shorter is one nevertheless.
most_in_a_period() {
	messages | awk -v period="$PERIOD" '/callbacks suppressed/ { next }
		!n || $1 >= begin + period - 0.1 { begin = $1; n = 0 }
		++n > most { most = n }
		END { print most + 0 }'
}

# Messages that came, and those that the log says were suppressed.
accounted_for() {
	messages | awk '/callbacks suppressed/ { sum += $2; next } { sum++ } END { print sum + 0 }'
}

# first_message RESULT: one that begins a period, and says how many there were
# not in the one before. Leaves in $began how many there were before it.
first_message() {
	sleep $((PERIOD + 1))
	began=$(all_messages | wc -l)
	gpuverbs register --offset 0 --length 64K --expect "$1" >/dev/null
}

# flooded TEXT RESULT PATTERN: registrations that end with RESULT, each for a
# reason that the log says as PATTERN.
flooded() {
	[ -n "$began" ] || first_message "$2"
	seen=$began
	tried "$1" "$2"
	first_message "$2"
	dmesg >/tmp/log
	check "$1: the log says why" grep -qE "\] nv_peer_mem: .*$3" /tmp/log
	check "$1: at most 10 lines in $PERIOD seconds" test "$(most_in_a_period)" -le 10
	check "$1: a line says how many are missing" eval \
		'messages | grep -qE "^[^ ]+ [0-9]+ callbacks suppressed"'
	equal "$1: every message is accounted for" $((TRIES + 2)) "$(accounted_for)"
	# The line about what was missing was this flood's, and came before.
	[ "$(all_messages | tail -n "+$((began + 1))" | grep -c suppressed)" = 0 ] || began=$((began + 1))
}

# knob NAME VALUE TEXT RESULT PATTERN: a flood while the driver's knob is set.
knob() {
	local before
	before=$(cat "$NVIDIA/$1")
	echo "$2" >"$NVIDIA/$1"
	flooded "$3" "$4" "$5"
	echo "$before" >"$NVIDIA/$1"
}

# As each load begins with a limit of its own, so does the count.
load_module
began=
knob dma_mapping_version 196608 "unknown DMA mapping" EOPNOTSUPP 'DMA mapping has version'
knob dma_entries_short 1 "short DMA mapping" EIO 'mapped 0 pages'
echo 'null_device 1' >"$CORE/switch"
flooded "no PCI device" EOPNOTSUPP 'not a PCI device'
echo 'null_device 0' >"$CORE/switch"
# The last one, for this verdict stays.
knob topology_denied 1 "a pair that the driver refuses" EOPNOTSUPP 'does not let this RDMA device'
unload_module

load_module persistent_api_support=0
began=
knob page_table_version 196608 "unknown page table" EOPNOTSUPP 'page table has version'
knob page_size 3 "unknown page size" EOPNOTSUPP 'page size 3'
knob page_size 0 "short page table" EIO 'pinned 1 pages'
echo 'put_pages EIO 1 0' >"$NVIDIA/fail"
flooded "unpinning fails" ok 'did not unpin'
echo clear >"$NVIDIA/fail"
