# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module has no known defect of earlier modules
load_gpu
load_rdma
MODULE=nv_peer_mem
. /lab/defects/rows.sh
# Commands in a row may fail, and the row must still go on to its end.
set +e
# The debug kernel only runs rows whose defects its checkers could see. The other rows are about
# errors, the log and counts, which the plain kernel shows as well.
all=$(rows)
[ "$MACHINE" != debug ] || all=$(grep -xE 'debug_row_.*|row_(freed_.*|released_.*|address_used_again|deregistered_by_child|unloaded_.*)' <<<"$all")
for row in $all; do
	try "$row"
	equal "$row_name: held" '' "$seen"
done
unload_it
