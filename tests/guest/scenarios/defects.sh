# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: none of the known defects of the modules before this one
load_gpu
load_rdma
MODULE=nv_peer_mem
. /lab/defects/rows.sh
for row in $(rows); do
	try "$row"
	equal "$row: held" '' "$seen"
done
