# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: an RDMA core without its directory in sysfs, as newer OFED has it
load_neighbours
echo 0 >/sys/module/ib_core/parameters/peer_sysfs
load_module
check "no directory" test ! -e "$PEERS"
check "registration works" gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3
