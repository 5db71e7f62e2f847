# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Needs: plain debug
# Shows: none of the known defects of the modules before this one
# All: the debug kernel
# Test: plain
load_gpu
load_rdma
MODULE=nv_peer_mem
. /lab/defects/rows.sh
# Things go wrong here, that is what it is about: a row goes on to its end.
set +e
for row in $(rows); do
	try "$row"
	equal "$row_name: held" '' "$seen"
done
unload_it
