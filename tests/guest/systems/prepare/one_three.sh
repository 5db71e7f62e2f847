# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Packages that are called and laid out as those of nv_peer_memory 1.3, with NVIDIA's own
# client in C, from Debian, as their module; installed.
driver=$(echo /usr/src/nvidia-[0-9]*)
ofed=/usr/src/ofa_kernel/default

# package NAME TEXT: of what is in /tmp/NAME.
package() {
	mkdir -p "/tmp/$1/DEBIAN"
	printf 'Package: %s\nVersion: 1.3-0\nArchitecture: all\nMaintainer: lab <lab@localhost>\nDescription: %s\n' \
		"$1" "$2" >"/tmp/$1/DEBIAN/control"
	dpkg-deb --root-owner-group -b "/tmp/$1" /tmp/
}

# Its source, which dkms builds.
source=/tmp/nvidia-peer-memory-dkms/usr/src/nvidia-peer-memory-1.3
mkdir -p "$source"
cp "$driver/nvidia-peermem/nvidia-peermem.c" "$source/nv_peer_mem.c"
: >"$source/conftest.h"
cat >"$source/Kbuild" <<KBUILD
obj-m := nv_peer_mem.o
ccflags-y := -I$driver/nvidia -I$ofed/include/rdma -I\$(src)
ccflags-y += -DNV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT -DNV_VERSION_STRING=\\"1.3-0\\"
KBUILD
cat >"$source/dkms.conf" <<DKMS
PACKAGE_NAME="nvidia-peer-memory"
PACKAGE_VERSION="1.3"
BUILT_MODULE_NAME[0]="nv_peer_mem"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
MAKE[0]="make -C /lib/modules/\$kernelver/build M=\$dkms_tree/nvidia-peer-memory/1.3/build KBUILD_EXTRA_SYMBOLS='$ofed/Module.symvers /lib/nv_peer_mem/nvidia.symvers' modules"
DKMS
mkdir -p /tmp/nvidia-peer-memory-dkms/DEBIAN
cat >/tmp/nvidia-peer-memory-dkms/DEBIAN/postinst <<'POSTINST'
#!/bin/sh
set -e
dkms add nvidia-peer-memory/1.3
dkms install nvidia-peer-memory/1.3 --force
POSTINST
cat >/tmp/nvidia-peer-memory-dkms/DEBIAN/prerm <<'PRERM'
#!/bin/sh
dkms remove nvidia-peer-memory/1.3 --all
PRERM
chmod 755 /tmp/nvidia-peer-memory-dkms/DEBIAN/p*
package nvidia-peer-memory-dkms "the module of 1.3"

# Its service, and the file that an administrator has edited.
mkdir -p /tmp/nvidia-peer-memory/etc/{init.d,infiniband} /tmp/nvidia-peer-memory/DEBIAN
cat >/tmp/nvidia-peer-memory/etc/init.d/nv_peer_mem <<'SERVICE'
#!/bin/sh
### BEGIN INIT INFO
# Provides: nv_peer_mem
# Required-Start: $local_fs openibd
# Required-Stop: $local_fs openibd
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
modprobe nv_peer_mem
SERVICE
chmod 755 /tmp/nvidia-peer-memory/etc/init.d/nv_peer_mem
echo 'ONBOOT=yes' >/tmp/nvidia-peer-memory/etc/infiniband/nv_peer_mem.conf
mkdir /tmp/nvidia-peer-memory/etc/init
echo 'start on runlevel [2345]' >/tmp/nvidia-peer-memory/etc/init/nv_peer_mem.conf
printf '%s\n' /etc/infiniband/nv_peer_mem.conf /etc/init.d/nv_peer_mem /etc/init/nv_peer_mem.conf >/tmp/nvidia-peer-memory/DEBIAN/conffiles
package nvidia-peer-memory "the service of 1.3"

dpkg -i /tmp/nvidia-peer-memory_1.3-0_all.deb /tmp/nvidia-peer-memory-dkms_1.3-0_all.deb
[ "$(modinfo -k "$kver" -F version nv_peer_mem)" = 1.3-0 ]
echo '# Ours: do not touch' >>/etc/infiniband/nv_peer_mem.conf
