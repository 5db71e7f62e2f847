# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Who has the package for one kernel, or no package, has no use for dkms.
magic="nv_peer_mem: version magic '1 SMP' should be '2 SMP'"
stale="nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client"
package="rpmbuild --rebuild --define 'kernel_version $KERNEL'"
no_dkms() { if grep -i dkms "$scratch/facts"; then fail "dkms is advised"; else ok; fi; }

module nv_peer_mem version=2.0.0 ground=kernel filename="/lib/modules/$KERNEL/extra/nvidia_peer_memory/nv_peer_mem.ko"
advises "$package" nv_peer_mem "$magic"
advises "$package" nv_peer_mem "$stale"
put /sys/module/nvidia/taint POE
secure_boot 1
put /sys/module/module/parameters/sig_enforce Y
look 0
only_these "flavour,module signed by"
says driver flavour bad proprietary "$package"
says security "module signed by" bad nobody "sign-file sha256 KEY CERTIFICATE /lib/modules/$KERNEL/extra/nvidia_peer_memory/nv_peer_mem.ko"
no_dkms

# One for another kernel: rpm knows it, modinfo does not.
new_machine
gone /modinfo/nv_peer_mem
put /rpm/nvidia_peer_memory-kmod nvidia_peer_memory-kmod-5.14.0-2.0.0-1.x86_64
look 0
says module installed bad "not for kernel $KERNEL" "The kmod package is for another kernel. Build one for this: $package"
no_dkms

# weak-modules has linked that one to this kernel.
link=/lib/modules/$KERNEL/weak-updates/nvidia_peer_memory/nv_peer_mem.ko
module nv_peer_mem version=2.0.0 filename="$link"
advises "rm $link && depmod. Build it again: $package" nv_peer_mem "$stale"

# By hand; then dkms comes along.
module nv_peer_mem version=2.0.0 filename="/lib/modules/$KERNEL/extra/nv_peer_mem.ko"
gone /rpm
advises "Build it again: make && make install" nv_peer_mem "$stale"
mkdir -p "$root/var/lib/dkms/nvidia-peer-memory"
advises "dkms build --force nvidia-peer-memory/2.0.0" nv_peer_mem "$stale"
