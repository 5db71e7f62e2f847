#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: the Debian packages can be installed, updated, removed, installed again and purged; an
# update that does not compile fails and leaves the older version; no update stops the service
. /checkout/tests/packages/lib.sh

conf=/etc/infiniband/nv_peer_mem.conf

# broken VERSION: makes /tmp/broken-VERSION.deb, the dkms package as this version, with a mistake in
# the source that breaks every build.
broken() {
	local dir=/tmp/broken source=/tmp/broken/usr/src/nvidia-peer-memory-$1
	rm -rf "$dir"
	dpkg-deb -R /packages/nvidia-peer-memory-dkms_*_all.deb "$dir"
	[ -d "$source" ] || mv "$dir/usr/src/nvidia-peer-memory-$version" "$source"
	sed -i "s/${version//./\\.}/$1/g" "$dir"/DEBIAN/{control,prerm,postinst,md5sums} "$source/dkms.conf"
	echo 'this does not compile' >>"$source/src/c/module.c"
	dpkg-deb -b "$dir" "/tmp/broken-$1.deb"
}

# keeps TEXT VERSION KNOWN DEB: checks that installing DEB fails, and says why; that the kernel keeps
# its module of VERSION; and that dkms knows the module as version KNOWN.
keeps() {
	refused "$1" "nv_peer_mem is not built for kernel $kver: src/c/module.c:" dpkg -i --force-downgrade "$4"
	check "$1: and what is left" says "Kernel $kver keeps its module of version $2+"
	check "$1: and that no kernel is without" says "Each kernel has a module, which may be that of an earlier version."
	check "$1: and what to do" says "dpkg --configure -a"
	check "$1: the older module is still there" [ "$(module_version)" = "$2" ]
	check "$1: and can be loaded" loads nv_peer_mem
	check "$1: also when dkms looks at it again" installed_for "$kver" "$3"
	check "$1: no copies are left" [ ! -e /var/lib/nvidia-peer-memory ]
}

# documented: succeeds if each manual page that the unit's Documentation= names is installed.
documented() {
	local page
	local -a pages
	read -ra pages < <(sed -n 's/^Documentation=//p' /usr/lib/systemd/system/nv_peer_mem.service)
	for page in "${pages[@]}"; do
		page=${page#man:}
		man -w "${page%(8)}" || return 1
	done
}

# pages: prints the installed pages that say what to run.
doc=/usr/share/doc/nvidia-peer-memory
pages() { cat "$doc/README.md" "$doc/docs/monitoring.md"; }

# each COMMAND: runs COMMAND for each line of the standard input, of which there must be one.
each() {
	local line number=0
	while read -r line; do
		"$@" "$line" || return 1
		number=$((number + 1))
	done
	[ $number -gt 0 ]
}

# collected: does what the page tells cron to do each minute, and looks at the result.
collected() {
	mkdir -p /var/lib/prometheus/node-exporter
	bash -c "$(sed -n 's/^    \* \* \* \* \* root //p' "$doc/docs/monitoring.md")"
	grep -q '^nvpm_info' /var/lib/prometheus/node-exporter/nvpm.prom
	rm -r /var/lib/prometheus
}

installed() {
	check "$1: dkms has installed it for the kernel" installed_for "$kver" "$1"
	check "$1: no other version is left in dkms" fails grep -v "^nvidia-peer-memory/$1," <(dkms status nvidia-peer-memory)
	check "$1: the module is of this version" [ "$(module_version)" = "$1" ]
	check "$1: modprobe finds all that it needs" loads nv_peer_mem
	callback_comes "$1"
	check "$1: dkms has signed it" [ "$(field signer nv_peer_mem_callback)" ]
}

# leaves TEXT [COMMAND...]: runs `nvpm leave` by COMMAND, and checks that it leaves the module alone
# and prints the text $left_alone.
leaves() { told "it is left alone $1" "$left_alone" leave "${@:2}"; }
leave() { "$@" /usr/sbin/nvpm leave /etc/init.d/nv_peer_mem; }

# chrooted COMMAND...: runs `COMMAND... nvpm leave` in a chroot that contains this system's /etc,
# /proc and /usr.
chrooted() {
	local name
	mkdir /tmp/below
	for name in etc proc usr; do
		mkdir "/tmp/below/$name"
		mount --bind "/$name" "/tmp/below/$name"
	done
	ln -s usr/bin usr/sbin usr/lib usr/lib64 /tmp/below/
	leave chroot /tmp/below "$@"
	for name in etc proc usr; do umount "/tmp/below/$name"; done
	rm -rf --one-file-system /tmp/below
}

files >/tmp/before

mapfile -t old < <(debs /packages/old)
mapfile -t new < <(debs /packages)
check "no driver is fetched along with them" fails grep nvidia-.*kernel \
	<(for deb in "${new[@]}"; do dpkg-deb -f "$deb" Pre-Depends Depends Recommends; done)
check "the older version can be installed" saying by_dpkg "${old[@]}"
installed 1.9.0
check "NVIDIA's module keeps its name" grep -q '/nvidia-peermem\.ko' <(loads nvidia_peermem)
check "the marker has another, and needs the module" grep -q '/nv_peer_mem\.ko' <(loads nv_peer_mem_marker)
check "which is not the name that it shows" [ "$(modinfo -k "$kver" -F name nv_peer_mem_marker)" = nvidia_peermem ]
check "the service's script can be run" saying /etc/init.d/nv_peer_mem stop
# This package was made of other sources, where no cargo was. The system of this test has no /sys.
refused "and finds its other parts" "nvpm: this package was made without the program nvpm-bin" /etc/init.d/nv_peer_mem status
without "$program"
code=0
/etc/init.d/nv_peer_mem status >"$said" 2>&1 || code=$?
check "without nvpm nobody knows the state" [ "$code" = 4 ]
back
check "systemd starts the service at boot" [ -e /etc/systemd/system/multi-user.target.wants/nv_peer_mem.service ]
check "so does SysV init" compgen -G '/etc/rc3.d/S*nv_peer_mem'
check "there is a man page" man -w nv_peer_mem
check "and one of nvpm" man -w nvpm
check "the unit's documentation is there" documented
check "each file for Prometheus and Grafana is there as the page names it" each test -s \
	< <(pages | grep -oE 'docs/monitoring/[a-z._]+[a-z]' | sed "s,^,$doc/,")
check "and can be read by them" python3 -m json.tool "$doc/docs/monitoring/nvpm.dashboard.json" /dev/null
check "as can the rules" grep -q '^groups:' "$doc/docs/monitoring/nvpm.rules.yml"
check "the rules have a test" grep -q '^rule_files:' "$doc/docs/monitoring/nvpm.rules_test.yml"
check "openibd finds a hook before it stops" [ -x /etc/infiniband/pre-stop-hook.sh ]
check "and one after it has started" [ -x /etc/infiniband/post-start-hook.sh ]
sed -i 's/^ONBOOT=yes/ONBOOT=no/' "$conf"

broken 1.9.5
keeps "an update that does not compile" 1.9.0 1.9.0 /tmp/broken-1.9.5.deb

check "the older package was for all processors" [ "$(dpkg-deb -f "${old[0]}" Architecture)" = all ]
explains_nothing
check "the next update can be installed" saying dpkg -i "${new[@]}"
installed "$version"
check "it is for this processor" [ "$(dpkg-query -W -f '${Architecture}' nvidia-peer-memory)" = "$(dpkg --print-architecture)" ]
check "and needs the C library of 2018" [ "$(dpkg-deb -f "${new[0]}" Depends | grep -o 'libc6 [^,]*')" = "libc6 (>= 2.28)" ]
explains
check "nvpm says what it can do" saying nvpm help
check "cron collects what the page says" collected
check "nvpm has each command that the pages name" each nvpm help < <(pages | grep -oE '`(sudo )?nvpm [a-z]+' | sed 's/.* //' | sort -u)
check "the copyright names the crates" grep -q '^Files: crates/clap-' "$doc/copyright"
check "the edited configuration file is kept" grep -qx ONBOOT=no "$conf"

# A downgrade and another commit of the same version must not take the module away either.
keeps "a downgrade that does not compile" "$version" "$version" /tmp/broken-1.9.5.deb
broken "$version"
keeps "the same version, which does not compile" "$version" "0.earlier-$version" "/tmp/broken-$version.deb"
# A missing program must not make the package fail.
without /usr/bin/make
told "without make" "nv_peer_mem is not built for kernel $kver: make is missing" dpkg --configure -a
check "without make the module is still there" [ "$(module_version)" = "$version" ]
back
check "the same version, which compiles, can be installed" saying dpkg -i "${new[1]}"
installed "$version"

# In a container or chroot, a loaded module belongs to the host, so removing a package must leave
# the module alone. nvpm recognizes this place by several signs. One sign is that this test runs in
# its own namespace of processes. NVPM_SYSROOT hides this sign, so that each other sign can be
# tested alone.
left_alone="the kernel belongs to another system (chroot or container): its module is left alone."
hidden=(env NVPM_SYSROOT=/tmp/place)
mkdir -p /tmp/place/run/systemd
leaves "where processes are in a namespace"
told "a machine of its own unloads it" "is not loaded." leave "${hidden[@]}"
told "a chroot is known as one" "$left_alone" chrooted "${hidden[@]}"
for mark in .dockerenv run/.containerenv run/systemd/container; do
	echo any >"/tmp/place/$mark"
	leaves "in a container ($mark)" "${hidden[@]}"
	rm "/tmp/place/$mark"
done
leaves "where the right to unload it lacks" "${hidden[@]}" setpriv --inh-caps=-sys_module --bounding-set=-sys_module
# The files in /sys/module are made up, so the module seems to be loaded, but cannot be unloaded.
mkdir -p /sys/module/nv_peer_mem /tmp/place/sys
ln -s /sys/module /tmp/place/sys/module
# The packages' scripts look here for what dkms knows, as long as NVPM_SYSROOT hides the rest.
mkdir -p /tmp/place/var/lib
ln -s /var/lib/dkms /tmp/place/var/lib/dkms
echo 0 >/sys/module/nv_peer_mem/refcnt
told "what cannot be unloaded, and is not in use, keeps no package" "the module stays loaded until the next boot." leave "${hidden[@]}"
echo 1 >/sys/module/nv_peer_mem/refcnt
check "trying to would be an error" fails saying leave "${hidden[@]}"
check "while memory is registered, no package can be removed" fails saying "${hidden[@]}" dpkg -r nvidia-peer-memory-dkms
check "nor both" fails saying "${hidden[@]}" dpkg -r nvidia-peer-memory nvidia-peer-memory-dkms
installed "$version"
check "both packages are still installed" [ "$(dpkg-query -W -f '${db:Status-Abbrev}' nvidia-peer-memory nvidia-peer-memory-dkms)" = "ri ri " ]

told "the packages can be removed, and leave it" "$left_alone" dpkg -r nvidia-peer-memory nvidia-peer-memory-dkms
rm -r /sys/module/nv_peer_mem
check "the module is gone" fails module_file
check "the callback module, too" fails loads nv_peer_mem_callback
check "dkms does not know it any more" fails grep nvidia-peer-memory <(dkms status)
check "the machine can be a Turkish one" [ "$(in_turkish tr '[:lower:]' '[:upper:]' <<<i)" = i ]
check "and be installed again, on a Turkish machine" saying in_turkish by_dpkg "${new[@]}"
installed "$version"
check "still with the edited configuration file" grep -qx ONBOOT=no "$conf"

# Packages can be removed even if a part of the system is broken.
# removed_without TEXT PATH...: checks that the package can be removed without these files.
removed_without() {
	without "${@:2}"
	told "removed without $1" "the module, if it is loaded, stays so until the next boot." \
		dpkg -r --force-depends nvidia-peer-memory
	back
	check "and installed again" saying by_dpkg "${new[0]}"
}
removed_without "the program" "$program"
removed_without "the command" /usr/sbin/nvpm
# dpkg does not restore a configuration file that an administrator has removed. So from here on, the
# service's script is missing.
rm /etc/init.d/nv_peer_mem
check "and be purged" saying dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms
files >/tmp/after
check "nothing is left, nothing else is missing" diff /tmp/before /tmp/after

# ---- the preloaded library ----

library=/usr/lib/nvidia-peer-memory/libnvpm_preload.so
package=$(echo /packages/nvidia-peer-memory-preload_*_"$(dpkg --print-architecture)".deb)
by_dpkg "${new[0]}"
refused "without its package nvpm run says which one it is" "install the package nvidia-peer-memory-preload (RPM: nvidia_peer_memory-preload), or name the file with --library." \
	on_dma_buf nvpm run true
files >/tmp/before
check "the library can be installed, and needs the C library alone" saying dpkg -i "$package"
examined "$library" "$(uname -m)"
quiet "$library"
check "it is preloaded by nothing" fails grep -r -e "$library" /etc
check "nvpm run finds it" [ "$(on_dma_buf nvpm run printenv LD_PRELOAD)" = "$library" ]
told "and does not take it where it is no help" "env runs as it is." nvpm run env
check "there is a man page of it" man -w nvpm_preload
check "it can be removed" saying dpkg -P nvidia-peer-memory-preload
files >/tmp/after
check "nothing is left of it" diff /tmp/before /tmp/after
dpkg -P nvidia-peer-memory

# ---- under systemd neither an update nor installing again stops the service or unloads anything ----

# The machine looks as if systemd had booted it. Scripts take the place of the following programs,
# and write their arguments to the file $calls.
mkdir -p /run/systemd/system
calls=/tmp/calls
for name in systemctl deb-systemd-invoke invoke-rc.d rmmod modprobe; do
	printf '#!/bin/sh\necho "%s %s" >>%s\n' "$name" "\$*" "$calls" >"/usr/local/bin/$name"
	chmod +x "/usr/local/bin/$name"
done

# kept TEXT DEB: checks that installing DEB stops, starts and loads nothing.
kept() {
	: >"$calls"
	check "$1" saying dpkg -i "$2"
	cat "$calls"
	check "$1: nothing was stopped or loaded" fails grep -E ' (stop|start|restart|try-restart|force-reload)( |$)|^(rmmod|modprobe)' "$calls"
}

kept "installed" /packages/old/nvidia-peer-memory_*.deb
kept "updated" /packages/nvidia-peer-memory_*.deb
kept "installed again" /packages/nvidia-peer-memory_*.deb

# This package stops the service, to show that `kept` would notice it.
dpkg-deb -R /packages/nvidia-peer-memory_*.deb /tmp/stops
printf '#!/bin/sh\n[ "%s" != upgrade ] || deb-systemd-invoke stop nv_peer_mem.service\n' "\$1" >/tmp/stops/DEBIAN/preinst
chmod 755 /tmp/stops/DEBIAN/preinst
dpkg-deb -b /tmp/stops /tmp/stops.deb
: >"$calls"
saying dpkg -i /tmp/stops.deb
check "a package whose preinst stops the service is noticed" grep -qx 'deb-systemd-invoke stop nv_peer_mem.service' "$calls"
