# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the image builds, loads and keeps the module while two operators replace driver and OFED
. /opt/operators/node.sh

# driver_is_whole TEXT VERSION: checks that the driver of this version is loaded, with its modules.
driver_is_whole() {
	equal "$1: the driver" "$2" "$(cat /sys/module/nvidia/version)"
	check "$1: CUDA's module is there" test -d /sys/module/nvidia_uvm
}

# metrics: prints what the pod serves to Prometheus.
metrics() {
	exec 9<>/dev/tcp/127.0.0.1/9989
	printf 'GET /metrics HTTP/1.0\r\n\r\n' >&9
	cat <&9
	exec 9>&-
}

say "first start"
node_without_drivers
pod_start
pod_says "it waits for the driver" 'waiting: NVIDIA.s driver is not loaded'
check "its probe fails, and says why" eval '! in_pod probe >/tmp/said && grep -q "driver is not loaded" /tmp/said'
check "the driver's container starts" driver_start "$OLD"
pod_says "it waits for the core" 'waiting: the RDMA core is not loaded'
check "the OFED container starts" ofed_start "$FIRST"
pod_says "it builds" 'building: nvidia_peermem'
serves nvidia_peermem "after the first start"
check "the node knows the pod's state" grep -q '"state":"ready"' /run/nv-peer-mem/status.json
equal "each reason is printed once" '' "$(grep '^nv-peer-mem' "$POD_LOG" | sort | uniq -d)"

say "OFED is replaced"
pod_forgets
check "the OFED container unloads the module" ofed_begin
pod_says "it waits for the OFED container" 'waiting: the OFED container is not ready'
check "OFED is replaced at the first attempt" ofed_load "$SECOND"
pod_says "it builds for the other core" 'building: nvidia_peermem'
serves nvidia_peermem "with the other OFED"

say "OFED is replaced by one whose openibd finds the users of the core"
pod_forgets
check "the OFED container unloads the module" ofed_begin
check "openibd of 26.07 replaces OFED" eval "OPENIBD=26.07 ofed_load $FIRST"
serves nvidia_peermem "with OFED 26.07"
pod_forgets
check "and back" ofed_start "$SECOND"
serves nvidia_peermem "with the other OFED again"

say "the OFED container restarts, and OFED stays"
pod_forgets
ofed_stop
check "the OFED container starts again" ofed_start "$SECOND"
pod_says "the module comes from the cache" 'loading: nvidia_peermem .*, from the cache'
serves nvidia_peermem "with the same OFED"

say "the driver is replaced"
pod_forgets
rm -f "$DRIVER_FLAG"
check "the driver's manager unloads the driver at the first attempt" manager_unload "$NEW"
check "the new driver's container starts" driver_start "$NEW"
pod_says "it builds for the other driver" 'building: nvidia_peermem'
serves nvidia_peermem "with the other driver"
driver_is_whole "with the other driver" "$NEW"

say "only the driver's container restarts"
pod_forgets
driver_stop
check "the driver is unloaded" test ! -d /sys/module/nvidia
check "the driver's container starts again" driver_start "$NEW"
serves nvidia_peermem "after the restart of the driver's container"
driver_is_whole "after the restart" "$NEW"

say "only RHEL's driver container restarts, whose script unloads the client last"
pod_forgets
rm -f "$DRIVER_FLAG"
pod_says "the pod lets the module go first" 'unloaded: nvidia_peermem'
DRIVER_SYSTEM=rhel driver_stop
check "so the driver is unloaded" test ! -d /sys/module/nvidia
check "RHEL's container starts again" driver_start "$NEW"
serves nvidia_peermem "after RHEL's container"
driver_is_whole "after RHEL's container" "$NEW"

say "the same, and the pod is slower than the script"
pod_forgets
pkill -STOP -f 'nv-peer-mem serve'
DRIVER_SYSTEM=rhel driver_stop
check "the client is unloaded" test ! -d /sys/module/nvidia_peermem
check "and the driver has stayed" test -d /sys/module/nvidia
pkill -CONT -f 'nv-peer-mem serve'
rm -f /run/nvidia/nvidia-driver.state
check "the next start of the container unloads it" driver_start "$NEW"
serves nvidia_peermem "after a start that unloads the driver"
driver_is_whole "after that start" "$NEW"

say "the driver's pod restarts, and the driver stays (fast path)"
pod_forgets
rm -f "$DRIVER_FLAG"
pod_says "the pod lets the module go as soon as the driver's container ends" 'unloaded: nvidia_peermem'
pod_says "and waits for the container" 'waiting: the driver.s container is not ready'
check "the driver's manager leaves the modules" manager_unload "$NEW"
check "the driver's container installs programs only" driver_start "$NEW"
equal "its root has no module" '' "$(find /run/nvidia/driver -name 'nvidia.ko*')"
serves nvidia_peermem "with the same driver"
check "OFED is replaced, too" ofed_start "$FIRST"
pod_says "it has neither headers nor compiler for them, and says so" 'waiting: no headers of kernel'
check "nothing is lost" driver_is_whole "without headers" "$NEW"

say "the node gets headers, and the container restarts"
umount /usr/src
pod_kill
pod_start
pod_says "it builds with the driver's symbols from the cache" 'building: .* NV_SRC=/var/lib/nv_peer_mem'
serves nvidia_peermem "with kept symbols"

say "only the container of the module restarts"
pod_kill
check "the module has stayed" test -d /sys/module/nvidia_peermem
pod_start
serves nvidia_peermem "after a crash of the container"

say "the node has booted again, and the cache has stayed"
check "a stop unloads the module" pod_stop
check "the module is gone" test ! -d /sys/module/nvidia_peermem
check "and the node knows of no pod" test ! -e /run/nv-peer-mem/status.json
began=$(date +%s%N)
pod_start
pod_says "nothing is built" 'loading: nvidia_peermem .*, from the cache'
serves nvidia_peermem "from the cache"
say "from the start of the container to a ready client: $((($(date +%s%N) - began) / 1000000)) ms, in an emulated machine"

say "memory is registered"
pod_forgets
hold gpuverbs register --offset 0 --length 300001 --kept 3
check "the OFED container refuses before anything is unloaded" eval '! ofed_begin'
nics_are_there "with registrations"
rm -f "$OFED_SHOWN/.driver-ready"
driver_stop
driver_is_whole "the driver's container has refused" "$NEW"
pod_says "the pod says that it waits" 'held: .* is ending or starting, but programs have GPU memory registered'
check "the pod cannot unload, and says how many hold" eval '! in_pod unload >/tmp/said'
check "and names the way to learn who" grep -q 'references to the module are held; with the rights of owners.yaml' /tmp/said
check "the registrations end" ended_well
pod_says "and the module is unloaded" 'unloaded'
check "it is gone" test ! -d /sys/module/nvidia_peermem
check "a stop ends the pod" pod_stop

say "the pod may name who holds the memory"
: >"$OFED_SHOWN/.driver-ready"
: >"$DRIVER_FLAG"
uid=3b0bd2a1-6f0c-4f0e-9d52-0d6f2c9e7a11
mkdir -p "/var/log/pods/training_trainer-0_$uid" "/sys/fs/cgroup/kubepods-pod${uid//-/_}.slice"
pod_start /operators/owners.yaml
serves nvidia_peermem "with more rights"
hold gpuverbs register --offset 0 --length 300001 --kept 3
echo "$held" >"/sys/fs/cgroup/kubepods-pod${uid//-/_}.slice/cgroup.procs"
metrics >/tmp/metrics
check "the metrics are those of a node" grep -qx 'nvpm_loaded 1' /tmp/metrics
check "and have the pod's state" grep -qxF 'nv_peer_mem_pod_state{state="ready"} 1' /tmp/metrics
check "and who holds the module" grep -qxF "nv_peer_mem_pod_registrations{process=\"$held\",command=\"gpuverbs\",pod=\"training/trainer-0\"} 3" /tmp/metrics
check "a stop ends the pod" pod_stop
check "which has named process and pod" grep -qE "held: .*process $held \(gpuverbs\) of pod training/trainer-0 has 3 registrations" "$POD_LOG"
check "the module has stayed" test -d /sys/module/nvidia_peermem
check "the registrations end" ended_well
check "and the module can be unloaded" rmmod nvidia_peermem
umount -l -R "$DRIVER_SHOWN" "$OFED_SHOWN/usr/src"
