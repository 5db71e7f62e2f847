# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: GPU memory freed under a live registration: it stays by default; where it is revoked, the next RDMA fails, no more
load_all
for by in ioctl munmap; do
	check "pinned until deregistration, freed by $by" revoke --by "$by" --expect pinned
done
equal "pinned: callbacks of the driver" 0 "$(nvidia_count callbacks_fired)"
unload_module
load_module persistent_api_support=0
equal "clients" "nv_mem nv_mem_nc" "$(client_names)"
check "write works while nothing is freed" transfer_seen 0 8M 300001 1 --shift 100
for free in to from; do
	for by in ioctl munmap; do
		check "$free freed by $by" revoke --free "$free" --by "$by"
	done
done
equal "revocations that the core saw" 4 "$(peer nv_mem num_free_callbacks)"
equal "callbacks of the driver" 4 "$(nvidia_count callbacks_fired)"
