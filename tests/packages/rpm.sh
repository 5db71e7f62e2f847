#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: the life of the rpm packages: with the module for one kernel, with dkms, updated and erased
# All: the same with rpm
. /checkout/tests/packages/lib.sh

conf=/etc/infiniband/nv_peer_mem.conf
# Debian's rpm knows no package of this system.
rpm=(rpm --dbpath /tmp/rpmdb)
arch=$(uname -m)

# install DIR kmod|dkms, update DIR kmod|dkms
install() { saying "${rpm[@]}" -ivh --nodeps "$1"/nvidia_peer_memory-[0-9]*."$arch".rpm "$1/nvidia_peer_memory-$2"-*.rpm; }
update() { saying "${rpm[@]}" -Uvh --nodeps "$1"/nvidia_peer_memory-[0-9]*."$arch".rpm "$1/nvidia_peer_memory-$2"-*.rpm; }
# shellcheck disable=SC2046 # a list of names
erase() { saying "${rpm[@]}" -e $("${rpm[@]}" -qa --qf '%{NAME}\n' 'nvidia_peer_memory*'); }

of_version() {
	check "$2: the module is of version $1" [ "$(module_version)" = "$1" ]
	check "$2: modprobe finds all that it needs" loads nv_peer_mem
	check "$2: NVIDIA's module keeps its name" grep -q '/nvidia-peermem\.ko' <(loads nvidia_peermem)
	check "$2: the marker needs the module" grep -q '/nv_peer_mem\.ko' <(loads nv_peer_mem_marker)
}

# life kmod|dkms
life() {
	files >/tmp/before
	check "$1: the older version can be installed" install /packages/old "$1"
	check "$1: it is said how to load it" says 'now: /etc/init.d/nv_peer_mem start'
	of_version 1.9.0 "$1"
	check "$1: the service's script can be run" [ -x /etc/init.d/nv_peer_mem ]
	check "$1: there is a man page" man -w nv_peer_mem
	check "$1: nvpm says what it can do" saying nvpm help
	check "$1: openibd finds a hook before it stops" [ -x /etc/infiniband/pre-stop-hook.sh ]
	sed -i 's/^ONBOOT=yes/ONBOOT=no/' "$conf"
	check "$1: the update can be installed" update /packages "$1"
	of_version "$version" "$1"
	check "$1: the edited configuration file is kept" grep -qx ONBOOT=no "$conf"
	[ "$1" = kmod ] || check "dkms has no other version" fails grep -v "^nvidia-peer-memory/$version," <(dkms status nvidia-peer-memory)
	check "$1: the packages can be erased" erase
	# rpm keeps what somebody has edited, and so its directory.
	check "$1: the edited configuration file is kept aside" rm "$conf.rpmsave"
	rmdir /etc/infiniband
	files >/tmp/after
	check "$1: nothing else is left, nothing is missing" diff /tmp/before /tmp/after
}

requires() { rpm -qpR "$1"; }
check "the service wants a module" grep -qx '(nvidia_peer_memory-kmod or nvidia_peer_memory-dkms)' \
	<(requires /packages/nvidia_peer_memory-[0-9]*."$arch".rpm)
check "the module wants its kernel" grep -qxF "(kernel-uname-r = $kver if kernel-uname-r)" \
	<(requires /packages/nvidia_peer_memory-kmod-*.rpm)
check "there are changes" grep -q "$version-" <(rpm -qp --changelog /packages/nvidia_peer_memory-dkms-*.rpm)
check "dkms' part has a hook for kernels" grep -q /kernel/install.d/41- <(rpm -qpl /packages/nvidia_peer_memory-dkms-*.rpm)

# As on any system that is made of rpm packages.
mkdir -p /usr/share/licenses

life kmod
life dkms

rebuild() { saying rpmbuild --rebuild --nodeps --define "_topdir /tmp/rpm" "$@" /packages/*.src.rpm; }
built() { basename -a /tmp/rpm/RPMS/*/*.rpm; }
check "without a kernel the other packages are made" rebuild --define 'kernel_version 1.2.3'
check "and it is said what is not" says 'No package with the module: kernel 1.2.3 has no headers here.'
check "there is the service" grep -q '^nvidia_peer_memory-[0-9]' <(built)
check "and the source for dkms" grep -q '^nvidia_peer_memory-dkms-' <(built)
check "and no module" fails grep -q kmod <(built)
mv /usr/src/ofa_kernel /tmp/
check "what keeps the module from being built ends it" fails rebuild
check "with the reason" says "no RDMA core with peer memory for kernel $kver"
check "and the way round" says 'For the other packages alone: rpmbuild --rebuild --without kmod'
check "which leads there" rebuild --without kmod
