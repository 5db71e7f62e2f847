# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Whether others than root may use RDMA, and lock memory.
limits() { put "/proc/$1/comm" "$2" && put "/proc/$1/limits" "Limit                     Soft Limit           Hard Limit           Units
Max locked memory         $3            $3            bytes"; }
chmod 600 "$root/dev/infiniband/uverbs0"
look 0
only_these /dev/infiniband
says access /dev/infiniband warn "uverbs0 has mode 0600" "chmod 0666"
gone /dev/infiniband/uverbs0
look 0
says access /dev/infiniband bad "no uverbs device" "modprobe ib_uverbs"

new_machine
limits 71 slurmd 8388608
limits 72 kubelet 65536
limits 73 containerd unlimited
limits 74 slurmdbd 65536
look 0
only_these "memory lock slurmd"
says access "memory lock slurmd" warn "8388608 bytes: its jobs cannot register more" "LimitMEMLOCK=infinity"
says access "memory lock kubelet" none "65536; containers have that of their runtime"
says access "memory lock containerd" good unlimited

# Of one that does not run, by its unit, where the last word counts.
new_machine
put /usr/lib/systemd/system/slurmd.service "LimitMEMLOCK=infinity"
look 0
only_these ''
says access "memory lock slurmd" good "infinity, by its unit"
put /etc/systemd/system/slurmd.service.d/site.conf "LimitMEMLOCK=64M"
look 0
only_these "memory lock slurmd"
says access "memory lock slurmd" warn "64M, by its unit"
put /usr/lib/systemd/system/containerd.service "[Service]"
look 0
says access "memory lock containerd" warn "DefaultLimitMEMLOCK"
