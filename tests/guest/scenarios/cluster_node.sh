# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the image on a node with a driver of its own and OFED in a container, as on AKS
. /opt/operators/node.sh

node_without_drivers
umount /usr/src
kernel=$(uname -r)
mount --bind "/operators/driver-$OLD/lib/modules/$kernel/kernel/drivers/video" "/lib/modules/$kernel/updates"
# No program has used CUDA yet, so nvidia_uvm is not loaded.
insmod "/lib/modules/$kernel/updates/nvidia.ko"
wait_for "the GPU" test -c /dev/nvidia-lab
pod_start
pod_says "it waits for the OFED container" 'waiting: the RDMA core is not loaded'
check "the OFED container starts" ofed_start "$FIRST"
pod_says "it builds with the driver of the node" 'building: .* DRIVER_ROOT=/host, CORE_ROOT=/run/mellanox/drivers'
serves nvidia_peermem "after the first start"

say "OFED is replaced"
pod_forgets
check "OFED is replaced at the first attempt" ofed_start "$SECOND"
pod_says "it builds for the other core" 'building: nvidia_peermem'
serves nvidia_peermem "with the other OFED"

say "the pod is removed"
check "a stop ends the pod" pod_stop
check "the module is gone" test ! -d /sys/module/nvidia_peermem
check "OFED is replaced without the pod, too" ofed_start "$FIRST"
umount -l -R "$OFED_SHOWN/usr/src"
