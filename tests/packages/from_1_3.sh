#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: an update from 1.3, with apt or dpkg, is refused and changes nothing if a kernel would be
# left without a module; otherwise each kernel gets our module, and a disabled service stays
# disabled, or a message says that the setting is not known
. /checkout/tests/packages/lib.sh

{ read -r service && read -r dkms; } < <(debs /packages)
old=(/tmp/nvidia-peer-memory_1.3-0_all.deb /tmp/nvidia-peer-memory-dkms_1.3-0_all.deb)

# apt: dpkg gets the PATH of this test, because its scripts must also find the replacement of uname.
apt() { apt-get install -y -o DPkg::Path="$PATH" -o DPkg::Options::=--force-confold "$@"; }
at_once() { dpkg -i --force-confold "$@"; }

# The test has three kernels. dkms builds for the running kernel and for the newest kernel. It
# builds for the kernel between them only on request.
kernels=("$kver" "$kver-between" "$kver-newest")
for kernel in "${kernels[@]:1}"; do
	another_kernel "$kernel"
	give_driver "$kernel"
done

# each_has VERSION: succeeds if each kernel has the module in this version.
each_has() {
	local kernel
	for kernel in "${kernels[@]}"; do
		[ "$(module_version "$kernel")" = "$1" ] || return 1
	done
}

# are VERSION PACKAGE...: succeeds if the packages are installed and configured in this version.
are() {
	local package
	for package in "${@:2}"; do
		[ "$(dpkg-query -f '${Status} ${Version}' -W "$package")" = "install ok installed $1" ] || return 1
	done
}
both=(nvidia-peer-memory nvidia-peer-memory-dkms)

# unchanged TEXT REASON COMMAND...: checks that COMMAND fails and prints REASON. Also checks that
# both packages and the module of each kernel are the same as before.
unchanged() {
	refused "$1: the update is refused" "$2" "${@:3}"
	check "$1: both packages are as they were" are 1.3-0 "${both[@]}"
	check "$1: each kernel has its module still" each_has 1.3-0
}

# The next lines make doubles of the packages of 1.3, with the same names, layout, and treatment of
# DKMS and of init's links. Their module is compiled from NVIDIA's own client in C, from Debian's
# driver. As in 1.3, their scripts leave the links alone if lsb_release prints Ubuntu. Debian 11 and
# 12 also have lsb_release, because their dkms depends on it.
#
# put FILE [MODE]: writes FILE from the standard input.
put() {
	mkdir -p "$(dirname "$1")"
	cat >"$1"
	chmod "${2:-644}" "$1"
}
# package NAME: makes a package of the files in /tmp/NAME.
package() {
	put "/tmp/$1/DEBIAN/control" <<-CONTROL
		Package: $1
		Version: 1.3-0
		Architecture: all
		Maintainer: lab <lab@localhost>
		Description: of 1.3
	CONTROL
	dpkg-deb --root-owner-group -b "/tmp/$1" /tmp/
}
driver=$(echo /usr/src/nvidia-[0-9]*) ofed=/usr/src/ofa_kernel/default
tree=/tmp/nvidia-peer-memory-dkms
source=$tree/usr/src/nv_peer_mem-1.3
put "$source/nv_peer_mem.c" <"$driver/nvidia-peermem/nvidia-peermem.c"
put "$source/conftest.h" </dev/null
put "$source/Kbuild" <<KBUILD
obj-m := nv_peer_mem.o
ccflags-y := -I$driver/nvidia -I$ofed/include/rdma -I\$(src)
ccflags-y += -DNV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT -DNV_VERSION_STRING=\\"1.3-0\\"
KBUILD
put "$source/dkms.conf" <<DKMS
PACKAGE_NAME="nv_peer_mem"
PACKAGE_VERSION="1.3"
BUILT_MODULE_NAME[0]="nv_peer_mem"
DEST_MODULE_LOCATION[0]="/kernel/../updates/"
AUTOINSTALL="yes"
MAKE[0]="make -C /lib/modules/\$kernelver/build M=\$dkms_tree/nv_peer_mem/1.3/build KBUILD_EXTRA_SYMBOLS='$ofed/Module.symvers /lib/nv_peer_mem/nvidia.symvers' modules"
DKMS
put "$tree/DEBIAN/postinst" 755 <<'POSTINST'
#!/bin/sh
[ "$1" != configure ] || /usr/lib/dkms/common.postinst nv_peer_mem 1.3 /usr/share/nv_peer_mem-dkms "" "$2"
POSTINST
put "$tree/DEBIAN/prerm" 755 <<'PRERM'
#!/bin/sh
# Like the script of 1.3, this removes the module also on an update.
[ -z "$(dkms status nv_peer_mem/1.3)" ] || dkms remove nv_peer_mem/1.3 --all
PRERM
package nvidia-peer-memory-dkms
tree=/tmp/nvidia-peer-memory
put "$tree/etc/init.d/nv_peer_mem" 755 <<'SERVICE'
#!/bin/sh
### BEGIN INIT INFO
# Provides: nv_peer_mem
# Required-Start: openibd
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
modprobe nv_peer_mem
SERVICE
put "$tree/etc/infiniband/nv_peer_mem.conf" <<<'ONBOOT=yes'
put "$tree/etc/init/nv_peer_mem.conf" <<<'start on runlevel [2345]'
put "$tree/DEBIAN/postinst" 755 <<'POSTINST'
#!/bin/sh
[ "$(lsb_release -s -i)" = Ubuntu ] || update-rc.d nv_peer_mem defaults
POSTINST
put "$tree/DEBIAN/prerm" 755 <<'PRERM'
#!/bin/sh
[ "$(lsb_release -s -i)" = Ubuntu ] || update-rc.d -f nv_peer_mem remove
PRERM
# on DISTRIBUTION: installs an lsb_release that prints DISTRIBUTION for the scripts of 1.3.
on() { put /usr/local/bin/lsb_release 755 <<<"echo $1"; }
find "$tree/etc" -type f -printf '/etc/%P\n' | put "$tree/DEBIAN/conffiles"
package nvidia-peer-memory
on Ubuntu
dpkg -i "${old[@]}"
echo '# Ours: do not touch' >>/etc/infiniband/nv_peer_mem.conf
for kernel in "${kernels[@]:1}"; do dkms install nv_peer_mem/1.3 -k "$kernel"; done
check "1.3 has its module for each kernel" each_has 1.3-0

# The update must be refused with apt and with dpkg, and in either order of the packages.
without_core
for way in apt at_once; do
	unchanged "$way" "version 1.3-0 stays as it is, with its modules" "$way" "$service" "$dkms"
	for kernel in "${kernels[@]}"; do
		check "$way: it is said why for $kernel" says "kernel $kernel: no RDMA core"
	done
	check "$way: it is said how to go on" says "NVPM_UPGRADE=anyway"
	unchanged "$way, the other way round" "kernel $kver: no RDMA core" "$way" "$dkms" "$service"
done
# dpkg refuses to install the package with the source alone, because this package pre-depends on the
# package with the service.
unchanged "the source alone" "pre-depends on nvidia-peer-memory" at_once "$dkms"

# The running kernel belongs to another system, as when an image is built in a chroot.
edited /usr/local/bin/uname sed 's/^-r) .*/-r) echo 9.9.9-builder ;;/'
chmod +x /usr/local/bin/uname
check "another kernel runs" [ "$(uname -r)" = 9.9.9-builder ]
unchanged "in an image" "kernel $kver: no RDMA core" apt "$service" "$dkms"
back

without "/lib/modules/$kver-between/updates/dkms/nvidia.ko"
depmod "$kver-between"
unchanged "one kernel" "kernel $kver-between: no NVIDIA driver" apt "$service" "$dkms"
check "one kernel: no other is" fails grep -E "kernel $kver(-newest)?: " "$said"
back
depmod "$kver-between"

without_core
dpkg -r nvidia-peer-memory
check "1.3 without its service: refused, too" fails saying apt "$service" "$dkms"
check "1.3 without its service: its source is as it was" are 1.3-0 nvidia-peer-memory-dkms
check "1.3 without its service: each kernel has its module still" each_has 1.3-0
back
dpkg -i --force-confold "${old[0]}"

# updated TEXT PACKAGE...: checks an update by apt, with the packages in this order.
updated() {
	check "$1: updated" saying apt "${@:2}"
	check "$1: both packages are ours" are "$version-1" "${both[@]}"
	check "$1: each kernel has our module" each_has "$version"
}

wanted() { compgen -G '/etc/systemd/system/*.wants/nv_peer_mem.service'; }
started() { compgen -G '/etc/rc[2-5].d/S*nv_peer_mem'; }

update-rc.d nv_peer_mem defaults
update-rc.d nv_peer_mem disable
check "the service of 1.3 is disabled" fails started
updated "a disabled service" "$service" "$dkms"
check "the administrator's file is as it was" grep -qx '# Ours: do not touch' /etc/infiniband/nv_peer_mem.conf
check "the file for upstart is gone" [ ! -e /etc/init/nv_peer_mem.conf ]
check "so is the source of 1.3" [ ! -e /usr/src/nv_peer_mem-1.3 ]
check "dkms has nothing of 1.3 left" fails grep . <(dkms status nv_peer_mem)
not_known="Whether the service of 1.3-0 was disabled is not known"
check "of that nobody is in doubt" fails says "$not_known"
check "it is disabled still, for systemd" fails wanted
check "and for SysV init" fails started
check "installed again" saying at_once "$service"
check "it is disabled still" fails wanted

dpkg -P "${both[@]}"
dpkg -i "${old[@]}"
update-rc.d nv_peer_mem defaults
check "the service of 1.3 is enabled" started
updated "an enabled service, the other way round" "$dkms" "$service"
check "of that nobody is in doubt, either" fails says "$not_known"
check "it is enabled still, for systemd" wanted
check "and for SysV init" started
dpkg -P "${both[@]}"

# The package of 1.3 removes its links during the update. So the update cannot know whether the
# service was disabled.
on Debian
dpkg -i "${old[@]}"
check "1.3 has enabled its service" started
update-rc.d nv_peer_mem disable
updated "a disabled service, and 1.3 forgets that" "$service" "$dkms"
check "it is said" says "$not_known"
check "and what to do" says "If it was: systemctl disable nv_peer_mem"
check "it is enabled" wanted
check "installed again" saying at_once "$service"
check "once is enough" fails says "$not_known"
dpkg -P "${both[@]}"

# An administrator may force the update.
dpkg -i "${old[@]}"
without_core
export NVPM_UPGRADE=anyway
check "the update goes on where that is wanted" saying apt "$service" "$dkms"
check "both packages are ours" are "$version-1" "${both[@]}"
check "there is no module then" fails module_file
