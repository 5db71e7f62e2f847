# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the kernel says when it refuses a module, and what is to be done then.
symbols="modprobe: ERROR: could not insert 'nv_peer_mem': Unknown symbol in module, or unknown parameter (see dmesg)"
closed="$symbols nv_peer_mem: Unknown symbol nvidia_p2p_put_pages (err -2) nv_peer_mem: module using GPL-only symbols uses symbols nvidia_p2p_get_pages from proprietary module nvidia."
advises "Build it again, and it does without them: dkms build --force nvidia-peer-memory/2.0.0" nv_peer_mem "$closed"
module nv_peer_mem version=2.0.0 ground=ready
advises "Boot another kernel, or install the open driver" nv_peer_mem "$closed"
module nv_peer_mem version=2.0.0 ground=kernel
advises "mokutil --import" nv_peer_mem "modprobe: ERROR: could not insert 'nv_peer_mem': Key was rejected by service"
rejected="modprobe: ERROR: could not insert 'nv_peer_mem': Key was rejected by service"
advises "There is no key /var/lib/dkms/mok.pub yet. dkms makes it when it builds a module: dkms build --force nvidia-peer-memory/2.0.0" nv_peer_mem "$rejected"
put /var/lib/dkms/mok.pub key
advises "reboot and confirm: mokutil --import /var/lib/dkms/mok.pub" nv_peer_mem "$rejected"
put /mokutil "is already enrolled"
advises "/var/lib/dkms/mok.pub, is enrolled already, so nv_peer_mem was not signed with it (modinfo -F signer nv_peer_mem). Build it again: dkms build --force" nv_peer_mem "$rejected"
advises "enrolled already, so nvidia was not signed with it (modinfo -F signer nvidia). Build it again: install the NVIDIA driver" nvidia "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
put /mokutil "is already in the enrollment request"
advises "waits to be confirmed: reboot, and choose Enroll MOK" nv_peer_mem "$rejected"
gone /mokutil
# Ubuntu's dkms signs with a key of the machine's owner, if it is told of no other.
put /etc/os-release 'ID=ubuntu'
put /var/lib/shim-signed/mok/MOK.der key
advises "mokutil --import /var/lib/shim-signed/mok/MOK.der" nv_peer_mem "$rejected"
put /etc/os-release 'ID="ubuntu-core"'
advises "mokutil --import /var/lib/shim-signed/mok/MOK.der" nv_peer_mem "$rejected"
put /etc/os-release 'ID=debian'
advises "mokutil --import /var/lib/dkms/mok.pub" nv_peer_mem "$rejected"
put /etc/dkms/framework.conf '# mok_certificate=/no/such'
put /etc/dkms/framework.conf.d/site.conf 'mok_certificate="/etc/keys/site.der"'
put /etc/keys/site.der key
advises "mokutil --import /etc/keys/site.der" nv_peer_mem "$rejected"
gone /etc/dkms /etc/os-release
advises "mokutil --import" nv_peer_mem "Loading of module with unavailable key is rejected"
advises "mokutil --import" nv_peer_mem "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"
advises "modprobe -r nvidia_peermem" nv_peer_mem "nv_peer_mem: nvidia_peermem is loaded, which serves the same memory: unload it"
advises "memory_peers" nv_peer_mem "nv_peer_mem: the RDMA core refuses the client 'nv_mem' (error 22)"
advises "/etc/modprobe.d" nv_peer_mem "nv_peer_mem: persistent_api_support=2: the values of this parameter are 0 and 1"
inherits="nv_peer_mem: module uses symbols nvidia_p2p_dma_unmap_pages from proprietary module nvidia, inheriting taint."
advises "/etc/modprobe.d" nv_peer_mem "$inherits nv_peer_mem: persistent_api_support=2: the values of this parameter are 0 and 1"
advises "dkms autoinstall -k $KERNEL" nv_peer_mem "nv_peer_mem: version magic '1 SMP' should be '2 SMP'"
advises "dkms build --force nvidia-peer-memory/2.0.0" nv_peer_mem "modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client nv_peer_mem: Unknown symbol ib_register_peer_memory_client (err -22)"
advises "MLNX_OFED" nv_peer_mem "$symbols nv_peer_mem: Unknown symbol ib_register_peer_memory_client (err -2)"
advises "does not have this function" nv_peer_mem "$symbols nv_peer_mem: Unknown symbol nvidia_p2p_get_pages_persistent (err -2)"
advises "was not built for this kernel" nv_peer_mem "$symbols nv_peer_mem: Unknown symbol _RNvNtCs1_6kernel5print11call_printk (err -2)"
advises "finds no GPU" nvidia "modprobe: ERROR: could not insert 'nvidia': No such device"
advises "no NVIDIA driver for kernel $KERNEL" nvidia "modprobe: FATAL: Module nvidia not found in directory /lib/modules/$KERNEL"
advises "no ib_uverbs for kernel $KERNEL" ib_uverbs "modprobe: FATAL: Module ib_uverbs not found in directory /lib/modules/$KERNEL"
advises "free -m" nv_peer_mem "modprobe: ERROR: could not insert 'nv_peer_mem': Cannot allocate memory"
