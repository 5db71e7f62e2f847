# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a ConnectX that does not take a key away, or never answers, when GPU memory is freed
. /lab/server.sh
load_neighbours
# shellcheck disable=SC2034 # rows.sh reads it, and has the steps of a verbs client
MODULE=nv_peer_mem
. /lab/defects/rows.sh
load_module persistent_api_support=0

state() { awk '!/^#/ { print $7 }' /proc/driver/nv_peer_mem/regions; }
is_revoking() { [ "$(state)" = revoking ]; }

# begin: starts a client that has registered memory.
begin() {
	start_steps
	step alloc 0 0 0x10000
	step reg 0
	equal "$1: registered" ok "$answer"
}

# step_is TEXT EXPECTED WORD...: makes a step, and checks the answer.
step_is() {
	step "${@:3}"
	equal "$1" "$2" "$answer"
}

# If the device refuses to take a key away, the RDMA core ignores the failure. The free returns, and
# the device can write to memory that may be another program's. Only the log of the device's driver
# shows this (docs/defects.md, B10).
mark_log
begin "refused"
nic fail_umr 1
step_is "refused: the free returns" ok free 0
expected=unpinned
[ "$MACHINE" != iommu ] || expected='unmapped unpinned'
kinds=$(nic violations | tr ';' '\n' | awk '{ print $1 }' | paste -sd' ')
equal "refused: the device still reaches the memory" "$expected" "$kinds"
nic clear
expect_log "refused: the log of the driver says so" 'reg umr failed \(4\)'
step_is "refused: the deregistration succeeds" ok dereg 0
end_steps
know_reports

mark_log
begin "deregistration"
nic fail_umr 1
step_is "deregistration: a refused key is an error" EFAULT dereg 0
step_is "deregistration: the second try succeeds" ok dereg 0
end_steps

start_steps
step alloc 0 0 0x10000
nic fail_umr 1
step_is "registration: a key that is not filled is an error" EFAULT reg 0
step_is "registration: the second try succeeds" ok reg 0
end_steps
know_reports

# If the device never answers, the free waits, with the lock of the NVIDIA driver. The list of
# registrations shows which registration and which device.
begin "lost"
nic lose_umr 1
step_is "lost: the free begins" ok '&free 0'
wait_for "the free to wait" is_revoking
device=$(basename "$(readlink "/sys/class/infiniband/$HCA/device")")
check "lost: the list names the device" grep -q " revoking $device verbs-steps$" /proc/driver/nv_peer_mem/regions
check "lost: the module stays" eval '! rmmod nv_peer_mem 2>/dev/null'
nic lose_umr 0
step_is "lost: answered at last, the free returns" ok join
equal "lost: and the registration is revoked" revoked "$(state)"
step_is "lost: deregistered" ok dereg 0
end_steps

begin "dead"
nic lose_umr 1
step_is "dead: the free begins" ok '&free 0'
wait_for "the free to wait" is_revoking
nic die
step_is "dead: when the device has died, the free returns" ok join
step_is "dead: deregistered" ok dereg 0
end_steps
know_reports
