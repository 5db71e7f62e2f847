#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: the life of the Debian packages: an older version, an update that does not compile, the update, removed, installed again, purged
# Test: yes
. /checkout/tests/packages/lib.sh

conf=/etc/infiniband/nv_peer_mem.conf

# debs DIR: those that are installed.
debs() { printf '%s\n' "$1"/nvidia-peer-memory_*_all.deb "$1"/nvidia-peer-memory-dkms_*_all.deb; }

# broken_update: the dkms package as version 1.9.5, with a mistake in what each ground has.
broken_update() {
	local dir=/tmp/broken
	dpkg-deb -R /packages/nvidia-peer-memory-dkms_*_all.deb "$dir"
	mv "$dir/usr/src/nvidia-peer-memory-$version" "$dir/usr/src/nvidia-peer-memory-1.9.5"
	sed -i "s/${version//./\\.}/1.9.5/g" "$dir"/DEBIAN/{control,prerm,postinst,md5sums} "$dir"/usr/src/*/dkms.conf
	echo 'this does not compile' >>"$dir/usr/src/nvidia-peer-memory-1.9.5/src/shim.c"
	dpkg-deb -b "$dir" /tmp/broken.deb
}

# documented: each page that the unit names.
documented() {
	local page
	local -a pages
	read -ra pages < <(sed -n 's/^Documentation=//p' /usr/lib/systemd/system/nv_peer_mem.service)
	for page in "${pages[@]}"; do
		page=${page#man:}
		man -w "${page%(8)}" || return 1
	done
}

installed() {
	check "$1: dkms has installed it for the kernel" grep -q "^nvidia-peer-memory/$1, $kver, .*: installed" <(dkms status)
	check "$1: no other version is left in dkms" fails grep -v "^nvidia-peer-memory/$1," <(dkms status nvidia-peer-memory)
	check "$1: the module is of this version" [ "$(module_version)" = "$1" ]
	check "$1: modprobe finds all that it needs" loads nv_peer_mem
}

# chrooted: in a directory with the same files.
chrooted() {
	local dir
	mkdir /tmp/below
	cp -a /bin /sbin /lib /lib64 /tmp/below/
	for dir in usr etc proc; do
		mkdir "/tmp/below/$dir"
		mount --bind "/$dir" "/tmp/below/$dir"
	done
	saying chroot /tmp/below /etc/init.d/nv_peer_mem leave
	for dir in usr etc proc; do umount "/tmp/below/$dir"; done
	rm -rf --one-file-system /tmp/below
	says "$left_alone"
}

files >/tmp/before

mapfile -t old < <(debs /packages/old)
mapfile -t new < <(debs /packages)
SECONDS=0
check "the older version can be installed" saying dpkg -i "${old[@]}"
note "dkms build $SECONDS s"
installed 1.9.0
check "NVIDIA's module keeps its name" grep -q '/nvidia-peermem\.ko' <(loads nvidia_peermem)
check "the marker has another, and needs the module" grep -q '/nv_peer_mem\.ko' <(loads nv_peer_mem_marker)
check "which is not the name that it shows" [ "$(modinfo -k "$kver" -F name nv_peer_mem_marker)" = nvidia_peermem ]
check "the service's script can be run" saying /etc/init.d/nv_peer_mem stop
saying /etc/init.d/nv_peer_mem status || true
check "and finds its other parts" says "nv_peer_mem: unknown"
check "systemd starts the service at boot" [ -e /etc/systemd/system/multi-user.target.wants/nv_peer_mem.service ]
check "so does SysV init" compgen -G '/etc/rc3.d/S*nv_peer_mem'
check "there is a man page" man -w nv_peer_mem
check "and one of nvpm" man -w nvpm
check "nvpm says what it can do" saying nvpm help
check "the unit's documentation is there" documented
check "openibd finds a hook before it stops" [ -x /etc/infiniband/pre-stop-hook.sh ]
check "and one after it has started" [ -x /etc/infiniband/post-start-hook.sh ]
sed -i 's/^ONBOOT=yes/ONBOOT=no/' "$conf"

broken_update
check "an update that does not compile is not installed" fails saying dpkg -i /tmp/broken.deb
check "it is said why" says "nv_peer_mem 1.9.5 was not built; the lines above say why."
check "and what is left" says "The module of an earlier version, if there was one, is still installed."
check "the older module is still there" [ "$(module_version)" = 1.9.0 ]
check "and can be loaded" loads nv_peer_mem
check "also when dkms looks at it again" grep -q "^nvidia-peer-memory/1.9.0, $kver, .*: installed" <(dkms status)

check "the next update can be installed" saying dpkg -i "${new[@]}"
installed "$version"
check "the edited configuration file is kept" grep -qx ONBOOT=no "$conf"

# In a guest system the module that is loaded is its host's.
left_alone="the kernel belongs to another system (chroot or container): its module is left alone."
check "a chroot is known as one" chrooted
: >/.dockerenv
check "in a container the module is left alone" saying /etc/init.d/nv_peer_mem leave
check "which is said" says "$left_alone"
rm /.dockerenv
check "so it is where the right to unload it lacks" saying setpriv --inh-caps=-sys_module --bounding-set=-sys_module /etc/init.d/nv_peer_mem leave
check "which is said, too" says "$left_alone"
check "elsewhere it would be unloaded" saying /etc/init.d/nv_peer_mem leave
check "if it were loaded" says "is not loaded."

check "the packages can be removed" saying dpkg -r nvidia-peer-memory nvidia-peer-memory-dkms
check "the module is gone" fails module_file
check "dkms does not know it any more" fails grep nvidia-peer-memory <(dkms status)
check "and be installed again" saying dpkg -i "${new[@]}"
installed "$version"
check "still with the edited configuration file" grep -qx ONBOOT=no "$conf"
check "and be purged" saying dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms
files >/tmp/after
check "nothing is left, nothing else is missing" diff /tmp/before /tmp/after
