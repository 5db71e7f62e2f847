# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: RDMA between two pieces of GPU memory, compared from outside the guest
load_all
equal "the module is compiled as this machine has it" "$(word rust '')" "$(statistic rust)"
equal "the driver is of this machine's flavour" "$(word driver '')" "$(flavour)"
case $(word name '') in
*-16k) page=16384 ;;
*) page=4096 ;;
esac
equal "pages are as large as this machine's name says" "$page" "$(getconf PAGESIZE)"
equal "version in sysfs" "$(modinfo -F version nv_peer_mem)" "$(cat /sys/module/nv_peer_mem/version)"
equal "clients" "nv_mem nv_mem_fixed nv_mem_revocable" "$(client_names)"
# The core has room for 15 characters, so it gets the version without the checksum of the sources.
equal "version that the RDMA core shows" "$(modinfo -F version nv_peer_mem | cut -d+ -f1)" "$(peer nv_mem version)"
[ "$NICS" = 0 ] || before=$(nic count gpu_accesses)
check "write, aligned" transfer_seen 0 1M 64K 1
check "write, 3 MiB and some bytes" transfer_seen 0 8M 3M+17 2
check "write, from the middle of a page" transfer_seen 0 8M 300001 3 --shift 12345
check "read" transfer_seen 1M 0 100000 4 --op read
check "send" transfer_seen 1M 0 100000 5 --op send
equal "registrations of the persistent client" 10 "$(peer nv_mem num_alloc_mrs)"
equal "registrations ended" 10 "$(peer nv_mem num_dealloc_mrs)"
equal "registrations of the revocable client" 0 "$(peer nv_mem_revocable num_alloc_mrs)"
# There was one pin for each registration, and one pin to find the map type.
equal "pins" 11 "$(nvidia_count calls_nvidia_p2p_get_pages_persistent)"
[ "$NICS" = 0 ] || check "the witness has seen the device use GPU memory" test "$(nic count gpu_accesses)" -gt "$before"
