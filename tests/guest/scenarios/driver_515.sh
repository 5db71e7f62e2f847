# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: with drivers 515 to 530 as well, where get_pages without callback pins for good
. /lab/driver.sh
load_driver 515
load_rdma

load_built driver-515 persistent_api_support=1
equal "clients" "nv_mem nv_mem_fixed nv_mem_revocable" "$(client_names)"
remember
check "pinned: write" transfer_seen 0 8M 300001 21 --shift 4096
# Two for the data, one for the verdict on the pair of GPU and device.
equal "pinned: pins, without a callback" 3 "$(grown calls_nvidia_p2p_get_pages)"
equal "pinned: put with the only call there is" 3 "$(grown calls_nvidia_p2p_put_pages)"
check "pinned: memory stays" revoke --expect pinned
equal "no callback came" 0 "$(grown callbacks_fired)"
hold gpuverbs inherit --offset 0 --length 300001 --via fork --steps owner-exit,hold,heir-dereg,hold
equal "pinned: outlives its process" 1 "$(nvidia_count live_persistent_pins)"
check "pinned: another process goes on" go_on
equal "pinned: and puts it" 0 "$(nvidia_count live_persistent_pins)"
check "pinned: all ended well" ended_well
with fail 'get_pages ENOMEM 1' registers "pinned: no room in BAR1" ENOMEM
unload_module

load_built driver-515 persistent_api_support=0
equal "clients" "nv_mem nv_mem_nc" "$(client_names)"
check "revocable: write" transfer_seen 0 8M 300001 22 --shift 4096
remember
check "revocable: revoked when freed" revoke
equal "revocable: callbacks" 1 "$(grown callbacks_fired)"
# This driver reads the page table of a put before it takes its lock.
for point in in_get_gap before_get_returns after_get before_put after_put; do
	register_losing revocable "$point" "${endings[$point]}"
done
registers "and then it works" ok
