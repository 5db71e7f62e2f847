# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the RDMA core as Ubuntu 26.04 ships DOCA-OFED: signed, compressed modules below kernel/,
# without OFED's directory, header and Module.symvers. The module is built for this core as an
# administrator does, and for a core with other versions of its symbols in
# /lib/nv_peer_mem/other-core.
set -euo pipefail
kver=$1 rust=$2
modules=/lib/modules/$kver
there=kernel/doca-ofed-26.01
mkdir -p "$modules/$there"
for module in "$modules"/updates/*.ko; do
	zstd -q "$module" -o "$modules/$there/${module##*/}.zst"
	printf 'override %s * %s\n' "$(basename "$module" .ko)" "$there"
done >/etc/depmod.d/doca-ofed.conf
mkdir /tmp/ofed
mv /usr/src/ofa_kernel/default /tmp/ofed/
rm -r /usr/src/ofa_kernel "$modules"/updates/*.ko "$modules"/extra/nv_peer_mem*.ko
depmod "$kver"
core=$(modinfo -k "$kver" -n ib_core)
[ "$core" = "$modules/$there/ib_core.ko.zst" ]

mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src /tmp/build/
cp -a /in/ready /tmp/build/build/prebuilt
cd /tmp/build
build() { make KVER="$kver" NVPM_RUST="$rust" "$@"; }
build 2>&1 | tee /tmp/said
grep -x "OFA_KERNEL   none needed; using the module's own header" /tmp/said
grep -x "ib_core      $core" /tmp/said
build install
find "$modules/extra" -name 'nv_peer_mem*.ko.xz' -exec xz -d {} +
depmod "$kver"

# The symbol has the version of the core's own build; a directory with another version is refused.
name=ib_register_peer_memory_client
version=$(awk -v name=$name '$2 == name { print $1 }' /tmp/ofed/default/Module.symvers)
[ "$version" != 0x00000000 ]
modprobe --dump-modversions "$modules/extra/nv_peer_mem.ko" | grep -x "$version	$name"
sed -i "s/^$version\(	$name	\)/0x12345678\1/" /tmp/ofed/default/Module.symvers
if build OFA_KERNEL=/tmp/ofed/default >/tmp/said 2>&1; then exit 1; fi
grep "is not of the RDMA core that kernel $kver loads: its Module.symvers has another version of $name" /tmp/said
mv "$core" /tmp/
build OFA_KERNEL=/tmp/ofed/default
mv /tmp/ib_core.ko.zst "$core"
install -D -m 644 nv_peer_mem.ko /lib/nv_peer_mem/other-core/nv_peer_mem.ko
