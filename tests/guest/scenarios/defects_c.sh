# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvidia-peermem has those defects, so defects.sh would find them
last "what goes wrong here stays wrong"
load_gpu
load_rdma
MODULE=nvidia-peermem
. /lab/defects/rows.sh
# A row must run to its end even if a command in it fails.
set +e

# The word for the problem that each row must show. A row may also show other problems.
declare -A breaks=(
	[freed_before_dma_map]=read_freed_memory
	[freed_in_dma_map]=race_dma_map
	[freed_while_deregistering]=mapping_dead
	[address_used_again]=pin_lost
	[released_while_revoking]=release_early
	[released_in_callback]=KASAN:_slab-use-after-free
	[list_not_trimmed]=bad_length
	[deregistered_by_child]=freed_context
	[unloaded_after_child]=unload_armed
	[unpin_refused]=noop_free
	[unloaded_after_unpin_refused]=unload_armed
	[unpinned_under_lock]=invalidate_deadlock
	[pinned_twice]=pins:2
	[entry_for_each_page]=entries:16
	[entries_look_like_pages]=tables_without_pages:1
	[no_room_in_bar1]=errno:EFAULT
	[unknown_page_table]=errno:ok
	[no_dma_device]=bad_peer
	[persistent_not_supported]=bad_return
	[wrong_parameter]=no_right_values
	[name_taken]=no_cause
	[log_flood]=flood
)
# The debug kernel runs only the row that needs KASAN.
case $MACHINE in
debug)
	rows=debug_row_released_in_callback
	spoil "nvidia-peermem leaves pins behind, and KASAN's report turns lockdep off"
	;;
*) rows=$(compgen -A function row_) ;;
esac
for row in $rows; do
	try "$row"
	check "$row_name: broke: $seen" grep -qwF -- "${breaks[$row_name]}" <<<"$seen"
	# The row has caused these reports on purpose, so check_clean must ignore them.
	know_reports
done
unload_it
