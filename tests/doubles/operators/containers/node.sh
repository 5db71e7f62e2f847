# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A node of a cluster: the operators' containers, the pod, and what scenarios check on such a node.
. /opt/operators/pod.sh
. /opt/operators/openibd.sh
. /opt/operators/ofed_container.sh
. /opt/operators/driver_container.sh
. /opt/operators/driver_manager.sh
last "it hides the modules of the node"

# Two drivers and two builds of the RDMA core, which /operators has.
OLD=550.163.01 NEW=570.195.03
FIRST=/operators/ofed-first SECOND=/operators/ofed-second

# nics_are_there TEXT: checks that the RDMA device is there.
nics_are_there() { check "$1: the RDMA device is there" test -d /sys/class/infiniband/rxe0; }

# serves NAME TEXT: checks that the pod is ready with the module NAME, and that memory can be
# registered.
serves() {
	pod_says "$2: ready" "ready: $1 .* is registered"
	check "$2: its probe succeeds" in_pod probe
	registers "$2" ok
	nics_are_there "$2"
}
