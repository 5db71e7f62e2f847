# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# NVIDIA's driver, of both flavours, or none.
crates="built with the kernel's Rust crates"
put /sys/module/nvidia/taint POE
look 0
only_these flavour
says driver flavour bad "proprietary, and nv_peer_mem was $crates" "dkms build --force nvidia-peer-memory/2.0.0"
for ground in free ready; do
	put /sys/module/nv_peer_mem/statistics/ground "$ground"
	look 0
	only_these ''
	says driver flavour good proprietary
done
gone /sys/module/nvidia
put /sys/module/nv_peer_mem/statistics/ground kernel
look 0
only_these nvidia
says driver nvidia warn "not loaded; version 590.1" "modprobe nvidia"
says driver flavour good open
module nvidia version=590.1 license=NVIDIA
look 0
says driver flavour bad "$crates" "dkms install --force nvidia-peer-memory/2.0.0"

# Of the module that is installed, where none is loaded.
gone /sys/module/nv_peer_mem
look 3
says driver flavour bad "$crates" "dkms build --force"
module nv_peer_mem version=2.0.0 ground=ready
look 3
says driver flavour good proprietary

loaded_module
gone /modinfo/nvidia
look 0
says driver nvidia bad "none for kernel $KERNEL" "the open or the proprietary ones"
says driver nvidia bad "none for kernel $KERNEL"
# Debian's drivers have files of other names, and others have names like theirs.
module nvidia-fs version=2.1 license=GPL name=nvidia_fs
module nvidia-tesla-535 version=535.1 license=NVIDIA name=nvidia
put "/lib/modules/$KERNEL/modules.dep" "extra/nvidia-fs.ko: extra/nvidia.ko
updates/dkms/nvidia-tesla-535.ko.xz:"
look 0
says driver nvidia warn "version 535.1" "modprobe nvidia"
says driver flavour bad "proprietary, and nv_peer_mem was built with the kernel's Rust crates"
gone /modinfo/nvidia-tesla-535
module nvidia-current-open version=550.1 license="Dual MIT/GPL" name=nvidia
put "/lib/modules/$KERNEL/modules.dep" "updates/dkms/nvidia-current-open.ko:"
look 0
says driver nvidia warn "version 550.1" "modprobe nvidia"
says driver flavour good open
