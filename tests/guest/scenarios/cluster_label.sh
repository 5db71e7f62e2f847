# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: under the name nv_peer_mem, the pod lets the module go when label or containers ask for it
. /opt/operators/node.sh

# The DaemonSet controller starts the pod where the label has the value of its node selector, and ends
# the pod elsewhere. k8s-driver-manager waits until the pod has ended.
client_label() {
	case $1 in
	true) pod_start /operators/label.yaml ;;
	*) pod_stop ;;
	esac
}

node_without_drivers
check "the driver's container starts" driver_start "$OLD"
check "the OFED container starts" ofed_start "$FIRST"
client_label true
serves nv_peer_mem "after the first start"

say "the driver is replaced"
rm -f "$DRIVER_FLAG"
check "the driver's manager unloads the driver at the first attempt" manager_unload "$NEW"
check "the new driver's container starts" driver_start "$NEW"
serves nv_peer_mem "with the other driver"

say "the OFED container restarts"
pod_forgets
rm -f "$OFED_SHOWN/.driver-ready"
pod_says "the pod lets the module go as soon as the container ends" 'unloaded: nv_peer_mem'
check "the hook for openibd is there" test -x "$OFED_SHOWN/nv_peer_mem/pre-stop"
check "the OFED container starts again" ofed_start "$FIRST"
serves nv_peer_mem "with the same OFED"

say "openibd restarts while nobody looks after the module"
pod_kill
OPENIBD_PRE_STOP=$OFED_SHOWN/nv_peer_mem/pre-stop
rm -f "$OFED_SHOWN/.driver-ready"
check "openibd can unload the RDMA core" openibd_stop
openibd_start "$FIRST"
: >"$OFED_SHOWN/.driver-ready"
client_label true
serves nv_peer_mem "after the restart of openibd"

say "without the hook, openibd would take the network cards away"
pod_kill
OPENIBD_PRE_STOP=''
check "openibd fails" eval '! openibd_stop'
check "the RDMA device is gone" test ! -d /sys/class/infiniband/rxe0
rmmod nv_peer_mem
openibd_stop
openibd_start "$FIRST"

say "memory is registered"
client_label true
serves nv_peer_mem "again"
pod_forgets
hold gpuverbs register --offset 0 --length 300001 --kept 3
check "the label's value ends the pod" client_label paused-for-driver-upgrade
check "which says that the module stays" grep -q 'held: .*is in use' "$POD_LOG"
check "the module has stayed" test -d /sys/module/nv_peer_mem
check "the registrations end" ended_well
check "and the module can be unloaded" rmmod nv_peer_mem
umount -l -R "$DRIVER_SHOWN" "$OFED_SHOWN/usr/src"
