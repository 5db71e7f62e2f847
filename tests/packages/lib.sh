# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each test of the packages sources this file first. The tests run on the host's kernel, in a copy
# of the guest's root file system. Their argument is the release of the guest's kernel.
set -euo pipefail

kver=$1
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' /checkout/dkms.conf)
said=/tmp/said

# The kernel of the host runs, but uname must print the guest's kernel to the packages. The
# processor is read first, because an earlier test may have replaced uname by a program that prints
# another processor.
processor=$(uname -m)
cat >/usr/local/bin/uname <<UNAME
#!/bin/sh
case "\$*" in
-r) echo $kver ;;
-m) echo $processor ;;
*) exec /usr/bin/uname "\$@" ;;
esac
UNAME
chmod +x /usr/local/bin/uname

# note TEXT: prints a note, which the lab shows with the test's result.
note() { printf 'note %s\n' "$*"; }

# check TEXT COMMAND...: runs COMMAND, and reports TEXT as passed, or as failed if COMMAND fails. A
# failed check ends the test.
check() {
	local text=$1
	shift
	if "$@"; then
		printf 'ok %s\n' "$text"
	else
		printf 'fail %s: %s\n' "$text" "$*"
		exit 1
	fi
}

# fails COMMAND...: succeeds if COMMAND fails.
fails() { ! "$@"; }

# saying COMMAND...: shows the output of COMMAND, and keeps the output for `says`.
saying() {
	local rc=0
	"$@" >"$said" 2>&1 || rc=$?
	cat "$said"
	return "$rc"
}

# says TEXT: succeeds if the last command of `saying` printed TEXT, which may be broken into lines.
# Carriage returns, which apt prints, count as spaces.
says() { grep -qF -e "$1" <<<"$(tr -s ' \r\n' ' ' <"$said")"; }

# told TEXT SAID COMMAND...: checks that COMMAND succeeds and prints SAID.
# refused TEXT SAID COMMAND...: checks that COMMAND fails and prints SAID.
told() {
	check "$1" saying "${@:3}"
	check "$1: it is said" says "$2"
}
refused() {
	check "$1" fails saying "${@:3}"
	check "$1: it is said why" says "$2"
}

# in_turkish COMMAND...: runs COMMAND in a Turkish locale, in which the capital of i is not I.
in_turkish() { (unset LC_ALL && export LANG=tr_TR.UTF-8 && "$@"); }

# files: prints all files of the system, except files that change without a package, such as logs
# and caches.
files() {
	find / -xdev \( -path /proc -o -path /dev -o -path /sys -o -path /run -o -path /tmp -o -path /var/log \
		-o -path /var/cache -o -path /var/lib/dpkg -o -path '/var/lib/dkms/mok.*' \
		-o -path /usr/local/bin/uname -o -path '/usr/lib/modules/*/modules.*' \) -prune -o -print | sort
}

# ---- the preloaded library ----

# examined LIBRARY ARCH: checks that the library exports its four functions and no other name, needs only
# the C library, of no particular version, is for the processor ARCH, and protects its code, data and
# stack.
examined() {
	local library=$1 processor=${2/_/-}
	readelf -hldVW --dyn-syms "$library" >/tmp/elf
	check "$library: it is for $processor" grep -qi "Machine: .*$processor" /tmp/elf
	check "$library: it needs only the C library" \
		[ "$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' /tmp/elf | sort | paste -sd' ')" = "libc.so.6 libdl.so.2 libpthread.so.0" ]
	check "$library: and no version of it" fails grep -e "Version needs" -e "UND.*@" /tmp/elf
	check "$library: it exports its four functions and nothing else" \
		[ "$(exports "$library" | paste -sd' ')" = "ioctl la_objopen la_symbind64 la_version" ]
	check "$library: it has a name" grep -qF '[libnvpm_preload.so]' /tmp/elf
	check "$library: its code is not relocated" fails grep TEXTREL /tmp/elf
	check "$library: all is bound when it is loaded" grep -q 'FLAGS.*NOW' /tmp/elf
	check "$library: what was bound can be read only" grep -q GNU_RELRO /tmp/elf
	check "$library: its stack cannot be executed" grep -qE 'GNU_STACK.* RW +0' /tmp/elf
	check "$library: nothing of the machine is in it" fails grep -aE '/(usr|root|home|tmp|var|opt|srv|mnt|in)/' "$library"
}
exports() { readelf --dyn-syms -W "$1" | awk '$7 ~ /^[0-9]+$/ { print $8 }' | sort; }

# ---- nvpm-bin ----

program=/usr/lib/nvidia-peer-memory/nvpm-bin

# explains: checks that `nvpm explain` of the installed package explains a log, by the program that the
# release has for this processor.
explains() {
	local code=0
	check "the program is the release's own, byte by byte" cmp "$program" "/packages/nvpm-$version-$processor"
	check "all users can run it" [ "$(stat -c %a "$program")" = 755 ]
	echo "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)" >/tmp/failure
	setpriv --reuid=nobody --clear-groups nvpm explain /tmp/failure >"$said" || code=$?
	cat "$said"
	check "nvpm explain ends as for a cause that was found" [ "$code" = 3 ]
	check "and names the cause" says "Cause (certain): the loaded ib_core is the distribution's, without peer memory"
}

# explains_nothing: checks that a package that was made without the program says so.
explains_nothing() {
	check "explain cannot be called" fails saying nvpm explain /tmp/failure
	check "it is said why" says "nvpm: this package was made without the program nvpm-bin"
}

# quiet LIBRARY: checks that a program starts with LIBRARY preloaded, and that LIBRARY prints
# nothing.
quiet() {
	saying env LD_PRELOAD="$1" /bin/true
	check "$1: a program is started with it" grep -q "$1" <(env LD_PRELOAD="$1" cat /proc/self/maps)
	check "$1: and it says nothing" [ ! -s "$said" ]
}

# on_dma_buf COMMAND...: runs COMMAND on a made-up machine with dma-buf and without peer memory.
on_dma_buf() {
	local root=/tmp/on_dma_buf gpu=/sys/bus/pci/devices/0000:03:00.0 nic=/sys/bus/pci/devices/0000:04:00.0
	[ -e $root ] || {
		mkdir -p $root/{proc,sys/module/{nvidia,ib_core},$gpu,$nic,sys/bus/pci/drivers/{nvidia,mlx5_core},sys/class/infiniband/mlx5_0}
		printf '0 T ib_umem_dmabuf_get\t[ib_uverbs]\n0 t mlx5_ib_reg_user_mr_dmabuf\t[mlx5_ib]\n' >$root/proc/kallsyms
		echo 590.1 >$root/sys/module/nvidia/version
		echo OE >$root/sys/module/nvidia/taint
		echo 0x10de >$root$gpu/vendor
		echo 0x030200 >$root$gpu/class
		echo 0x2330 >$root$gpu/device
		echo 0x15b3 >$root$nic/vendor
		echo 0x020700 >$root$nic/class
		ln -s ../../drivers/nvidia $root$gpu/driver
		ln -s ../../drivers/mlx5_core $root$nic/driver
		ln -s ../../../bus/pci/devices/0000:04:00.0 $root/sys/class/infiniband/mlx5_0/device
	}
	NVPM_SYSROOT=/tmp/on_dma_buf "$@"
}

# These functions print the version and the file of the module that modprobe would load.
# module_version [KERNEL]: prints the version of the kernel's module, without the checksum of its
# sources.
module_version() { modinfo -k "${1:-$kver}" -F version nv_peer_mem | cut -d+ -f1; }
module_file() { modinfo -k "$kver" -n nv_peer_mem; }

# field NAME MODULE: prints a field that modinfo shows, such as `signer`.
field() { modinfo -k "$kver" -F "$1" "$2"; }

# loads NAME: succeeds, and prints the modules, if modprobe finds the module and all its
# dependencies.
loads() { modprobe -S "$kver" --show-depends "$1"; }

# callback_comes VERSION: checks that modprobe loads the callback module together with nv_peer_mem,
# which needs it. Also checks that the callback module has the right version and the right
# signature.
callback_comes() {
	check "$1: the callback module is loaded with it" grep -q '/nv_peer_mem_callback\.ko' <(loads nv_peer_mem)
	check "$1: it is of this version" [ "$(field version nv_peer_mem_callback)" = "$1" ]
	check "$1: it is signed, or not, as the module is" [ "$(field signer nv_peer_mem_callback)" = "$(field signer nv_peer_mem)" ]
	check "$1: it needs no other module" [ "$(grep -c '^insmod' <(loads nv_peer_mem_callback))" = 1 ]
}

# The file of NVIDIA's driver.
driver=/lib/modules/$kver/updates/dkms/nvidia.ko

# The file of the RDMA core with peer memory, which comes with OFED's directory /usr/src/ofa_kernel.
core=/lib/modules/$kver/updates/ib_core.ko

# without PATH...: moves the files away. They stay away until `back` is called.
away=()
without() {
	away+=("$@")
	for path; do mv "$path" "$path.away"; done
}

without_core() { without "$core" /usr/src/ofa_kernel; }

without_driver() {
	without "$driver"
	depmod "$kver"
}

# edited PATH COMMAND...: replaces the file by the output of COMMAND, which reads the old file. The
# new file stays until `back` is called.
edited() {
	without "$1"
	"${@:2}" <"$1.away" >"$1"
}

# back: puts back all files that were moved away or edited.
back() {
	for path in "${away[@]}"; do
		rm -rf "$path"
		mv "$path.away" "$path"
	done
	[[ " ${away[*]} " != *" $driver "* ]] || depmod "$kver"
	away=()
}

# with_config SED_SCRIPT: edits the kernel's configuration. The edit lasts until `back` is called.
with_config() { edited "/usr/src/linux-headers-$kver/.config" sed "$1"; }

# debs DIR: prints the packages in DIR, in the order that dpkg needs.
debs() { printf '%s\n' "$1"/nvidia-peer-memory_*.deb "$1"/nvidia-peer-memory-dkms_*_all.deb; }

# by_dpkg DEB...: installs the packages one after the other, because dpkg must configure each
# package before it unpacks the next package.
by_dpkg() {
	local deb
	for deb; do dpkg -i --force-confold "$deb" || return 1; done
}

# unpacked: unpacks the dkms package, and adds the module's source to dkms. The hooks are in place
# afterwards, but nothing is built.
unpacked() {
	local hook
	dpkg -i /packages/nvidia-peer-memory_*.deb
	dpkg --unpack /packages/nvidia-peer-memory-dkms_*_all.deb
	for hook in /etc/kernel/{postinst,header_postinst}.d/nvidia-peer-memory; do
		mv "$hook.dpkg-new" "$hook"
	done
	dkms add "nvidia-peer-memory/$version"
}

# another_kernel KVER: makes up another kernel, which has the headers of the guest's kernel.
another_kernel() {
	mkdir -p "/lib/modules/$1/updates/dkms"
	ln -s "$(readlink -f "/lib/modules/$kver/build")" "/lib/modules/$1/build"
	: >"/lib/modules/$1/modules.order"
	: >"/lib/modules/$1/modules.builtin"
}

# give_driver KVER: installs the driver of the guest's kernel for the made-up kernel.
give_driver() {
	cp "$driver" "/lib/modules/$1/updates/dkms/"
	depmod "$1"
}

# installed_for KVER [VERSION]: succeeds if dkms has installed the module for the kernel.
installed_for() { grep "^nvidia-peer-memory/${2:-$version}, $1, .*: installed" <(dkms status nvidia-peer-memory); }

# kernel_installed [KVER [HOOKS]]: runs dkms' hook and then ours in /etc/kernel/HOOKS, as the
# installation of a kernel does. Fails at the first hook that fails.
kernel_installed() {
	run-parts --exit-on-error --regex '^(dkms|nvidia-peer-memory)$' --arg="${1:-$kver}" "/etc/kernel/${2:-postinst.d}"
}

# The files of Debian's Rust, which tests move away in order to test without Rust. They may be
# missing. From the source of the library, one file is enough.
rust=(/usr/bin/rustc "/usr/src/rustc-$( (rustc --version || true) 2>/dev/null | cut -d' ' -f2)/library/core/src/lib.rs")

# with_proprietary_driver: changes the licence in the driver's file to NVIDIA's. The change lasts
# until `back` is called. The new text has the same length, so that nothing moves in the file.
with_proprietary_driver() {
	edited "$driver" env LC_ALL=C sed 's|license=Dual MIT/GPL|license=NVIDIA\x00x=123|'
	check "the driver is the proprietary one" [ "$(modinfo -k "$kver" -F license nvidia)" = NVIDIA ]
}
