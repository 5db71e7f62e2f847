# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# NVIDIA's own module for the same purpose.
gone /sys/module/nv_peer_mem/holders
look 0
only_these nvidia_peermem
says driver nvidia_peermem bad "only one module can" "modprobe -r nvidia_peermem"
gone /sys/module/nvidia_peermem
put /etc/modules-load.d/gpu.conf nvidia-peermem
look 0
says driver nvidia_peermem warn "/etc/modules-load.d/gpu.conf loads it on boot" "Remove nvidia-peermem from"
