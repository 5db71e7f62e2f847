# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A kernel that takes no modules, or has no Rust, where the module is not there.
config=/boot/config-$KERNEL
put "$config" "# CONFIG_RUST is not set
CONFIG_MODULES=y"
look 0
if grep '^machine|' "$scratch/facts"; then fail "of no interest here"; else ok; fi
gone /sys/module/nv_peer_mem /modinfo/nv_peer_mem
look 3
says machine Rust none "without the kernel's crates"
put "$config" "CONFIG_MODULES=y
CONFIG_CFI=y"
look 3
says machine Rust bad "checks indirect calls" "another kernel"
put "$config" "CONFIG_MODULES=y
CONFIG_RUST=y"
look 3
if grep '^machine|' "$scratch/facts"; then fail "it has both"; else ok; fi
put /proc/config "# CONFIG_MODULES is not set"
gzip -f "$root/proc/config"
look 3
says machine modules bad "takes none" "Boot a kernel"
new_machine
gone /sys/module/nv_peer_mem
put /proc/sys/kernel/modules_disabled 1
look 3
says machine modules bad "until the next boot" Reboot
