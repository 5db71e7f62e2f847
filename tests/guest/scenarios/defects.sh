# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module has no known defect of earlier modules
load_gpu
load_rdma
MODULE=nv_peer_mem
. /lab/defects/rows.sh
# A row must run to its end even if a command in it fails.
set +e
# In the debug kernel, only those rows run whose defects its checkers can notice. The other rows are
# about errors, the log and counts, which are the same in the plain kernel.
all=$(rows)
[ "$MACHINE" != debug ] || all=$(grep -xE 'debug_row_.*|row_(freed_.*|released_.*|address_used_again|deregistered_by_child|unloaded_.*)' <<<"$all")
for row in $all; do
	try "$row"
	equal "$row_name: held" '' "$seen"
done
unload_it
