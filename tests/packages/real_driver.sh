#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: dkms builds the module for NVIDIA's real proprietary driver; the module imports the driver's
# symbols with the symbol versions of the driver's own build, and no GPL-only symbol
. /checkout/tests/packages/lib.sh

# imports: prints the driver's symbols that the module imports, with their versions.
imports() { modprobe --dump-modversions /tmp/nv_peer_mem.ko | grep nvidia_p2p_; }

unpacked
mapfile -t drivers < <(printf '%s\n' "/lib/modules/$kver/updates/dkms"/nvidia*.ko* | grep -v peermem)
driver=${drivers[0]}
check "one driver is installed, $driver" [ "${#drivers[@]}" = 1 ]
check "it is the proprietary one" [ "$(modinfo -F license "$driver")" = NVIDIA ]
check "dkms builds the module" saying kernel_installed
log=/var/lib/dkms/nvidia-peer-memory/$version/$kver/$(uname -m)/log/make.log
check "beside that driver" grep -F "$driver (version $(modinfo -F version "$driver"), proprietary)" "$log"
check "without a warning" fails grep -iE 'warning|objtool:|modpost:' "$log"
note "$(basename "$driver") $(modinfo -F version "$driver"), kernel $kver, Rust $(modinfo -k "$kver" -F rust nv_peer_mem)"

for name in nv_peer_mem nv_peer_mem_callback nv_peer_mem_marker; do
	check "$name: what it needs is found" saying loads "$name"
	check "$name: its licence" [ "$(modinfo -k "$kver" -F license "$name")" = "Dual BSD/GPL" ]
done
loads nv_peer_mem >"$said"
check "the driver comes first" says "insmod $driver"

xz -dcf "$(module_file)" >/tmp/nv_peer_mem.ko
# This file lists the exports of the callback module, in the format of Module.symvers.
sed -n 's/^EXPORT_SYMBOL(\(.*\));$/0x0\t\1\tnv_peer_mem_callback\tEXPORT_SYMBOL/p' \
	"/usr/src/nvidia-peer-memory-$version/src/callback/callback.c" >/tmp/callback.symvers
check "no import is for GPL modules only, and the code is in order" /checkout/tests/lab/checks/object closed /tmp/nv_peer_mem.ko \
	"/lib/modules/$kver/build" /usr/src/ofa_kernel/default/Module.symvers /lib/nv_peer_mem/nvidia.symvers \
	/tmp/callback.symvers
check "what it imports of the driver has versions" [ "$(grep -c . <(imports))" -ge 6 ]
while read -r crc name; do
	check "$name has the version of the driver's own build" grep -q "^$crc	$name	" /lib/nv_peer_mem/nvidia.symvers
done < <(imports)
