# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Machines: stock checker
# Shows: none of the known defects of the modules before this one
load_gpu
load_rdma
MODULE=nv_peer_mem
. /lab/defects/rows.sh
for row in $(rows); do
	try "$row"
	equal "$row_name: held" '' "$seen"
done
unload_it
