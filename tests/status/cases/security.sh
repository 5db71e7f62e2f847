# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Secure Boot, and modules without a signature.
module nv_peer_mem version=2.0.0
look 0
only_these ''
says security "module signed by" none "nobody; this kernel does not require it"
secure_boot 1
put /sys/kernel/security/lockdown "none [integrity] confidentiality"
look 0
only_these "module signed by"
says security "Secure Boot" none on
says security lockdown none integrity
says security "module signed by" bad "nobody: this kernel does not load it" "mokutil --import"
put /var/lib/dkms/mok.pub key
look 0
says security "module signed by" bad "nobody: this kernel does not load it" "reboot and confirm: mokutil --import /var/lib/dkms/mok.pub; then build it again, and dkms signs it: dkms build --force nvidia-peer-memory/2.0.0"
put /mokutil "is already enrolled"
look 0
says security "module signed by" bad "nobody: this kernel does not load it" "is enrolled already, so nv_peer_mem was not signed with it"
gone /sys/kernel/security /sys/firmware
put /sys/module/module/parameters/sig_enforce Y
look 0
only_these "module signed by"
says security "Secure Boot" none "not started by UEFI"
says security "signature required" none yes
put /sys/firmware/efi/fw_platform_size 64
look 0
says security "Secure Boot" none "cannot be read"
