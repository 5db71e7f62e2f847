# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: memory freed at every moment of a registration, by every kind of task
# Machines: stock iommu checker
load_gpu
load_rdma
STRIKER=/usr/local/lib/lab-striker.so
load_module persistent_api_support=0
cat $NVIDIA/own_dma
for m in in_get_gap before_get_returns after_get in_dma_map after_dma_map in_dma_unmap after_dma_unmap before_put after_put; do
echo $m >$NVIDIA/strike
LD_PRELOAD=$STRIKER gpuverbs register --offset 0 --length 1M | grep result
cat $NVIDIA/strike $NVIDIA/violations
grep -E 'strikes_|revoked_in' $NVIDIA/counters | grep -v ' 0$' | paste -sd' '
done
