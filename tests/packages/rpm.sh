#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: the rpm packages, with the module for one kernel or with dkms, can be installed, updated
# and erased; and source packages can be rebuilt
. /checkout/tests/packages/lib.sh

conf=/etc/infiniband/nv_peer_mem.conf
wanted=/etc/systemd/system/multi-user.target.wants/nv_peer_mem.service
# The packages of this Debian system are not in the database of rpm, so the tests use a database of
# their own, and install with --nodeps.
rpm=(rpm --dbpath /tmp/rpmdb)
arch=$(uname -m)

# install DIR kmod|dkms: installs two packages from DIR, the main package and the package kmod or
# dkms. If an earlier version is installed, updates it.
install() { "${rpm[@]}" -Uvh --nodeps "$1"/nvidia_peer_memory-[0-9]*."$arch".rpm "$1/nvidia_peer_memory-$2"-*.rpm; }
# shellcheck disable=SC2046 # a list of names
erase() { "${rpm[@]}" -e $("${rpm[@]}" -qa --qf '%{NAME}\n' 'nvidia_peer_memory*'); }

of_version() {
	check "$2: the module is of version $1" [ "$(module_version)" = "$1" ]
	check "$2: modprobe finds all that it needs" loads nv_peer_mem
	callback_comes "$1"
	check "$2: NVIDIA's module keeps its name" grep -q '/nvidia-peermem\.ko' <(loads nvidia_peermem)
	check "$2: the marker needs the module" grep -q '/nv_peer_mem\.ko' <(loads nv_peer_mem_marker)
}

# while_registered WHAT: checks that nothing is erased while programs have memory registered. The
# made-up files are in /srv, because rpm gives scriptlets a private /tmp. This is not tested with
# kmod. The scriptlet of kmod compares the running kernel, but rpm's own PATH hides the replacement
# of uname from it.
while_registered() {
	mkdir -p /srv/place/sys /srv/place/run/systemd
	ln -s /sys/module /srv/place/sys/module
	echo 3 >/sys/module/nv_peer_mem/refcnt
	export NVPM_SYSROOT=/srv/place
	check "$1: while memory is registered, nothing is erased" fails saying erase
	unset NVPM_SYSROOT
	check "$1: it is said why" says "End the programs that hold them, then try again."
	of_version "$version" "$1"
	rm -r /sys/module/nv_peer_mem/refcnt /srv/place
}

# life kmod|dkms: installs, updates and erases the packages of this kind.
life() {
	files >/tmp/before
	told "$1: the older version can be installed" 'now: systemctl start nv_peer_mem' install /packages/old "$1"
	of_version 1.9.0 "$1"
	check "$1: the service's script can be run" [ -x /etc/init.d/nv_peer_mem ]
	check "$1: there is a man page" man -w nv_peer_mem
	explains_nothing
	check "$1: openibd finds a hook before it stops" [ -x /etc/infiniband/pre-stop-hook.sh ]
	check "$1: the service is started at boot" [ -L "$wanted" ]
	systemctl disable nv_peer_mem.service
	sed -i 's/^ONBOOT=yes/ONBOOT=no/' "$conf"
	check "$1: the update can be installed" saying install /packages "$1"
	of_version "$version" "$1"
	explains
	check "$1: nvpm says what it can do" saying nvpm help
	check "$1: the edited configuration file is kept" grep -qx ONBOOT=no "$conf"
	check "$1: what was disabled is disabled still" [ ! -e "$wanted" ]
	[ "$1" = kmod ] || check "dkms has no other version" fails grep -v "^nvidia-peer-memory/$version," <(dkms status nvidia-peer-memory)
	# The module seems to be loaded, but it belongs to the host, as in a container, and cannot
	# be unloaded.
	mkdir -p /sys/module/nv_peer_mem
	[ "$1" = kmod ] || while_registered "$1"
	told "$1: the packages can be erased, and leave the host's module" "its module is left alone." erase
	rmdir /sys/module/nv_peer_mem
	check "$1: no service is started at boot" [ ! -e "$wanted" ]
	check "$1: the callback module is gone" fails loads nv_peer_mem_callback
	# rpm keeps an edited configuration file under a name with .rpmsave, and therefore keeps the
	# directory of this file.
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
check "the library wants none of the others" fails grep nvidia_peer_memory <(requires /packages/nvidia_peer_memory-preload-*.rpm)
check "the program wants the C library of 2018" [ "$(requires /packages/nvidia_peer_memory-[0-9]*."$arch".rpm |
	sed -n 's/^libc\.so\.6(GLIBC_\([0-9.]*\)).*/\1/p' | sort -V | tail -n 1)" = 2.28 ]
check "the licences of its crates are there" grep -q /crates.txt <(rpm -qpl /packages/nvidia_peer_memory-[0-9]*."$arch".rpm)
check "there are changes" grep -q "$version-" <(rpm -qp --changelog /packages/nvidia_peer_memory-dkms-*.rpm)
check "dkms' part has a hook for kernels" grep -q /kernel/install.d/41- <(rpm -qpl /packages/nvidia_peer_memory-dkms-*.rpm)

# Every system with rpm packages has this directory. The test makes it before the installation, so
# that it is not taken for a leftover.
mkdir -p /usr/share/licenses

# one_three: makes a package with the layout of 1.3. As in 1.3, the package's scriptlet removes the
# links to the service's script from /etc/rc3.d.
one_three() {
	mkdir -p /tmp/one_three
	cat >/tmp/one_three.spec <<-'SPEC'
		Name: nvidia_peer_memory
		Version: 1.3
		Release: 0
		Summary: the service of 1.3
		License: GPL
		%description
		For a test.
		%install
		mkdir -p %{buildroot}/etc/init.d
		printf '#!/bin/sh\n' >%{buildroot}/etc/init.d/nv_peer_mem
		%preun
		rm -f /etc/rc3.d/S*nv_peer_mem
		%files
		%attr(755,root,root) /etc/init.d/nv_peer_mem
	SPEC
	rpmbuild -bb --nodeps --define '_topdir /tmp/one_three' /tmp/one_three.spec
}

# from_1_3 on|off: checks an update from 1.3. With `on`, the service of 1.3 was started at boot;
# with `off`, it was not.
from_1_3() {
	check "1.3 ($1) can be installed" saying "${rpm[@]}" -ivh --nodeps /tmp/one_three/RPMS/*/*.rpm
	[ "$1" = off ] || ln -s ../init.d/nv_peer_mem /etc/rc3.d/S95nv_peer_mem
	refused "1.3 ($1) is not replaced by a service without a module" '(nvidia_peer_memory-kmod or nvidia_peer_memory-dkms)' \
		"${rpm[@]}" -Uvh /packages/nvidia_peer_memory-[0-9]*."$arch".rpm
	check "1.3 ($1) can be updated" saying install /packages kmod
	if [ "$1" = on ]; then
		check "the service of 1.3 was started on boot, and ours is" [ -L "$wanted" ]
	else
		check "the service of 1.3 was not started on boot, and ours is not" [ ! -e "$wanted" ]
	fi
	check "1.3 ($1): the packages can be erased" saying erase
}
check "a package of 1.3" one_three
from_1_3 on
from_1_3 off

life kmod
life dkms

library=/usr/lib/nvidia-peer-memory/libnvpm_preload.so
files >/tmp/before
check "the library can be installed, without the other packages" "${rpm[@]}" -Uvh --nodeps /packages/nvidia_peer_memory-preload-*."$arch".rpm
examined "$library" "$(uname -m)"
quiet "$library"
check "it is preloaded by nothing" fails grep -r -e "$library" /etc
check "there is a man page of it" man -w nvpm_preload
check "nvpm is installed beside it" saying install /packages dkms
check "nvpm run finds it" [ "$(on_dma_buf nvpm run printenv LD_PRELOAD)" = "$library" ]
check "all is erased" saying erase
files >/tmp/after
check "nothing is left of it" diff /tmp/before /tmp/after

# A preset of the site disables the service, and the packages must obey this preset. Then the
# packages are erased, although a part of the system is broken.
mkdir -p /etc/systemd/system-preset
echo 'disable nv_peer_mem.service' >/etc/systemd/system-preset/10-site.preset
told "presets are obeyed" "is not loaded at boot, as this system's presets say; to change that: systemctl enable --now nv_peer_mem" \
	install /packages kmod
check "and the service is not started at boot" [ ! -e "$wanted" ]
without /usr/sbin/nvpm
check "the packages can be erased without their command" saying erase
away=()
check "enabled by hand" saying install /packages kmod
systemctl enable nv_peer_mem.service
without "$program"
check "the packages can be erased without the program" saying erase
back
check "and no service is started at boot" [ ! -e "$wanted" ]
rm -r /etc/systemd/system-preset /usr/sbin/nvpm.away

rebuild() { rpmbuild --rebuild --nodeps --define "_topdir /tmp/rpm" "$@" /packages/*.src.rpm; }
built() { basename -a /tmp/rpm/RPMS/*/*.rpm; }
# Kernels of SUSE and Debian may have two hyphens in their release. rpm does not accept such a
# release as a version.
another_kernel "$kver-two"
give_driver "$kver-two"
check "the module is packaged for a kernel with two hyphens" saying rebuild --without preload --define "kernel_version $kver-two"
check "under its name" grep -qF "nvidia_peer_memory-kmod-$kver-two-" <(built)
check "without a requirement that rpm could not read" fails grep kernel-uname-r <(requires /tmp/rpm/RPMS/*/*kmod*.rpm)
check "the packages have no file in common" [ -z "$(for file in /tmp/rpm/RPMS/*/*.rpm /packages/*preload*."$arch".rpm; do rpm -qlp "$file" | sort -u; done | grep -v -e /usr/share/licenses -e '^/usr/lib/nvidia-peer-memory$' | sort | uniq -d)" ]
rm -r /tmp/rpm "/lib/modules/$kver-two"
told "without a kernel the other packages are made" 'No package with the module: kernel 1.2.3 has no headers here.' \
	rebuild --define 'kernel_version 1.2.3'
check "there is the service" grep -q '^nvidia_peer_memory-[0-9]' <(built)
check "and the source for dkms" grep -q '^nvidia_peer_memory-dkms-' <(built)
check "and no module" fails grep -q kmod <(built)
without_core
refused "what keeps the module from being built ends it" "no RDMA core with peer memory for kernel $kver" rebuild
check "and the way round" says 'For the other packages alone: rpmbuild --rebuild --without kmod'
check "which leads there" saying rebuild --without kmod
check "there is the library" grep -q '^nvidia_peer_memory-preload-' <(built)
rm -r /tmp/rpm
check "and without it, where that is wanted" saying rebuild --without kmod --without preload
check "there is none" fails grep -q preload <(built)
