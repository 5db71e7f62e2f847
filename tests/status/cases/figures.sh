# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What is registered, by whom, and what has failed.
figures=/sys/module/nv_peer_mem/statistics
put $figures/regions 2
put $figures/bytes 18446744073709551615
put $figures/revocations 7
for pid in 41 42; do
	put /proc/$pid/comm "program \"$pid\""
	mkdir -p "$root/proc/$pid/fd"
	ln -s /dev/null "$root/proc/$pid/fd/3"
done
ln -s /dev/infiniband/uverbs0 "$root/proc/42/fd/4"
look 0
only_these ''
says use regions none 2
says use bytes none 18446744073709551615
says use revocations none 7
says use "process 42" none 'program "42" has an RDMA device open'
if grep -q "process 41" "$scratch/facts"; then fail "process 41 has no RDMA device open"; else ok; fi
put $figures/failed_no_memory 1
put $figures/failed_not_supported 2
put $figures/failed_freed 3
put $figures/failed_driver 4
look 0
only_these failed_no_memory,failed_not_supported,failed_freed,failed_driver
says use failed_no_memory warn 1 BAR1
says use failed_not_supported warn 2 dmesg
says use failed_freed warn 3 "correct the program"
says use failed_driver warn 4 NVRM

put $figures/failed_left_behind 5
put $figures/left_behind 6
put $figures/pairs "GPU-1 0000:05:00.0 ours
GPU-1 0000:06:00.0 driver
GPU-2 0000:05:00.0 unasked
GPU-2 0000:06:00.0 refused"
look 0
only_these "failed_no_memory,failed_not_supported,failed_freed,failed_driver,failed_left_behind,left_behind,GPU-2 0000:06:00.0"
says use failed_left_behind warn 5 "until it frees"
says use left_behind warn 6 "Deregister where"
says use "GPU-1 0000:05:00.0" good agrees
says use "GPU-1 0000:06:00.0" none "by the NVIDIA driver"
says use "GPU-2 0000:05:00.0" none "cannot be asked"
says use "GPU-2 0000:06:00.0" bad "does not let" NVreg_GrdmaPciTopoCheckOverride
