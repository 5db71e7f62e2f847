# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvidia-peermem has those defects, so that defects.sh can find them
load_gpu
load_rdma
MODULE=nvidia-peermem
. /lab/defects/rows.sh
for row in $(compgen -A function row_); do
	try "${row#row_}"
	say "${row#row_}: $seen"
done
