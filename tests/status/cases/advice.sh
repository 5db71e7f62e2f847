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

# Another module than this one is at odds with its neighbours.
advises "OFED is updated by half" ib_uverbs "modprobe: ERROR: could not insert 'ib_uverbs': Invalid argument ib_uverbs: disagrees about version of symbol ib_query_port ib_uverbs: Unknown symbol ib_query_port (err -22)"
advises "driver was built for another kernel" nvidia "nvidia: disagrees about version of symbol module_layout"
advises "updated after the module was built" nv_peer_mem "nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client
nv_peer_mem: disagrees about version of symbol nvidia_p2p_get_pages"
advises "modinfo -n ib_uverbs names the file" ib_uverbs "modprobe: ERROR: could not insert 'ib_uverbs': Exec format error ib_uverbs: version magic '1 SMP' should be '2 SMP'"

# The driver and the GPU, as the driver says it.
no_device="modprobe: ERROR: could not insert 'nvidia': No such device"
advises "older than Turing" nvidia "$no_device
NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:1db6)
NVRM: installed in this system is not supported by open
NVRM: nvidia.ko because it does not include the required GPU
NVRM: System Processor (GSP)."
advises "Install the open one" nvidia "$no_device
NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: 10de:2901)
NVRM: installed in this system requires use of the NVIDIA open kernel modules."
advises "last series that does" nvidia "$no_device
NVRM: supported through the NVIDIA 470.xx Legacy drivers."
advises "blacklist nouveau" nvidia "$no_device
NVRM: The NVIDIA probe routine was not called for 1 device(s).
NVRM: No NVIDIA devices probed."
advises "Reboot." nvidia "$no_device
NVRM: API mismatch: the client has the version 590.2, but
NVRM: this kernel module has the version 590.1."

# What keeps modprobe from loading anything.
denied="modprobe: ERROR: could not insert 'nv_peer_mem': Operation not permitted"
advises "in a container, do it on the host" nv_peer_mem "$denied"
put /sys/kernel/security/lockdown "none [integrity] confidentiality"
advises "locked down" nv_peer_mem "$denied"
put /proc/sys/kernel/modules_disabled 1
advises "kernel.modules_disabled" nv_peer_mem "$denied"
advises "allow_unsupported_modules 1" nv_peer_mem "modprobe: ERROR: module 'nv_peer_mem' is unsupported
modprobe: ERROR: Use --allow-unsupported or set allow_unsupported_modules 1 in
modprobe: ERROR: /etc/modprobe.d/10-unsupported-modules.conf
$denied"
put /etc/modprobe.d/debian.conf "install nvidia modprobe -i nvidia-current"
put /etc/modprobe.d/site.conf "install nvidia /bin/false"
advises "forbids nvidia: remove it. /etc/modprobe.d/site.conf:install nvidia /bin/false" nv_peer_mem "modprobe: ERROR: libkmod/libkmod-module.c:1084 command_do() Error running install command '/bin/false' for module nvidia: retcode 1
modprobe: ERROR: could not insert 'nv_peer_mem': Invalid argument"
# With /bin/true modprobe says that all is well; then this module misses the driver.
put /etc/modprobe.d/site.conf "install nvidia /bin/true"
gone /sys/module/nvidia
advises "is not loaded: modprobe nvidia, and see the kernel's log. /etc/modprobe.d/site.conf:install nvidia /bin/true" nv_peer_mem "$symbols nv_peer_mem: Unknown symbol nvidia_p2p_get_pages (err -2)"
