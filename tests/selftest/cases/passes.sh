# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Everything is good: one line for each pair, nobody asks status.
looks 0 '^nvpm selftest: 1 GPU, 1 RDMA device; 64 KiB each way, seed 1$' \
	'^  ok  GPU 0 0000:1a:00.0, mlx5_0/1: to GPU 64 KiB, [0-9.]+ [MG]B/s; from GPU 64 KiB, [0-9.]+ [MG]B/s; freed: the device was refused \(revocable\)$' \
	'passed, 1 pair$' --
export DOUBLE=pinned
put /sys/module/nv_peer_mem/parameters/persistent_api_support 1
looks 0 'freed: pinned until deregistered \(persistent\)$' --
unset DOUBLE
# Memory that cannot be pinned so is served revocably.
looks 0 'revocable' --
# Any size, and parts of pages.
for size in 1 4097 1M 5000001; do looks 0 'passed, 1 pair' -- --size "$size"; done
# A device that takes less in one message.
export DOUBLE=short
for size in 1M 2M 5000001; do looks 0 'passed, 1 pair' -- --size "$size"; done
unset DOUBLE
# By LID, and several of both.
hca ib0 InfiniBand
export GPUS=2 HCAS="mlx5_0 ib0"
looks 0 'GPU 0 0000:1a:00.0, mlx5_0/1: ' 'GPU 0 0000:1a:00.0, ib0/1: ' 'GPU 1 0000:1b:00.0, mlx5_0/1: ' \
	'GPU 1 0000:1b:00.0, ib0/1: ' 'passed, 4 pairs' --
looks 0 'GPU 1 .* ib0/1' 'passed, 1 pair$' -- --gpu 1 --device ib0
looks 0 'GPU 1 .* mlx5_0/1' 'passed, 2 pairs' -- --gpu 0000:1B:00.0
if [ ! -s "$asked" ]; then ok; else fail "status was asked"; fi
