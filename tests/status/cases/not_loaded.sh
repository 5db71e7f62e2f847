# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The module is not loaded, in each way.
gone /sys/module/nv_peer_mem /sys/kernel/mm/memory_peers /sys/module/nvidia_peermem
look 3
says module state bad "not loaded" "nv_peer_mem start"
says module installed good "version 2.0.0 for kernel $KERNEL"
says module ground none kernel
says detection programs none

gone /modinfo/nv_peer_mem
look 3
says module state bad "not installed for kernel $KERNEL" "dkms autoinstall -k $KERNEL"

gone /sys/module
look 4
says module state bad unknown "mount -t sysfs"
