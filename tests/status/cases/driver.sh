# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# NVIDIA's driver, of both flavours, or none.
put /sys/module/nvidia/taint POE
look 0
only_these flavour
says driver flavour bad proprietary "open kernel modules"
gone /sys/module/nvidia
look 0
only_these nvidia
says driver nvidia warn "not loaded; version 590.1" "modprobe nvidia"
says driver flavour good open
module nvidia version=590.1 license=NVIDIA
look 0
says driver flavour bad proprietary "open kernel modules"
gone /modinfo/nvidia
look 0
says driver nvidia bad "none for kernel $KERNEL" "open kernel modules"
module nvidia-current-open version=550.1 license="Dual MIT/GPL"
look 0
says driver nvidia warn "version 550.1" "modprobe nvidia"
