# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# build.sh KERNEL NAME TO [kept | node]: runs make in the image as the image's own program does
# (nvpm/keeper/src/build.rs), for the module NAME.
#
# TO gets the results, the words of make, and the files from which `make` recognizes the same build.
# If the program gives make other words, `make` does not recognize the build. With `kept`, the
# driver's symbols come from an earlier build and the headers from the node, as after the fast path of
# the driver's container. With `node`, driver and headers are those of the node.
set -eu
kernel=$1 name=$2 to=$3 how=${4-}
driver=/run/nvidia/driver host=/host ofed=/run/mellanox/drivers
tree=/made/tree kept=/made/kept

# The words of make after its directory.
words() { printf '%s\n' "KVER=$kernel" "KDIR=$root/usr/src/linux-headers-$kernel" "NVPM_NAME=$name" NVPM_RUST=prebuilt "$setting" "CORE_ROOT=$ofed" CC=gcc; }

# link_all DIRECTORY PATTERN: makes the headers reachable at the place where their package installs them.
link_all() {
	for there in "$root/usr/$1"/$2; do
		[ -e "$there" ] || continue
		[ ! -L "/usr/$1/${there##*/}" ] || rm "/usr/$1/${there##*/}"
		[ -e "/usr/$1/${there##*/}" ] || ln -s "$there" "/usr/$1/"
	done
}

# build ROOT SETTING: builds with the headers of a root directory, and make's setting for the driver.
build() {
	root=$1 setting=$2
	rm -rf "$tree"
	mkdir -p "$tree"
	for part in Kbuild Makefile dkms.conf build src; do cp -RLp "/lab/$part" "$tree/"; done
	link_all src '*'
	link_all lib 'linux-kbuild-*'
	# shellcheck disable=SC2046 # words without blanks
	make -C "$tree" -j4 $(words) >/made/log 2>&1 || {
		cat /made/log >&2
		exit 1
	}
}

if [ "$how" = node ]; then
	build "$host" "DRIVER_ROOT=$host"
else
	build "$driver" "DRIVER_ROOT=$driver"
fi
if [ "$how" = kept ]; then
	mkdir -p "$kept"
	source=$(sed -n 's/^NV_SRC  *\(\/[^ ]*\)$/\1/p' /made/log | head -n 1)
	cp "${source:-$tree/src/include/nvidia}/nv-p2p.h" "$kept/"
	cp "$tree/nvidia.symvers" "$kept/Module.symvers"
	build "$host" "NV_SRC=$kept"
fi
mkdir -p "$to"
for file in "$name.ko" nv_peer_mem_callback.ko nvidia.symvers; do
	[ ! -e "$tree/$file" ] || cp "$tree/$file" "$to/"
done
cp /made/log "$to/"
words >"$to/words"
cp "$ofed/usr/src/ofa_kernel/x86_64/$kernel/Module.symvers" "$to/core.symvers"
cp "$driver/lib/modules/$kernel/kernel/drivers/video/nvidia.ko" "$to/"
