# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Runs make in the image for each pair of driver and RDMA core that a scenario has, with the
# directories at the places where a pod has them. An emulated guest needs minutes for a build, so a
# scenario replaces the image's make by neighbours/make, which answers with these results. The image
# with that make is below /operators/image.
set -euo pipefail
kver=$1
root=/tmp/image
built=/operators/image/built

# within DRIVER CORE COMMAND...: runs COMMAND in the image, beside this driver and core.
within() {
	# shellcheck disable=SC2016 # the inner shell expands the words
	unshare --mount bash -euc '
		kver=$1 driver=$2 core=$3 root=$4
		shift 4
		export LIBMOUNT_FORCE_MOUNT2=always
		mkdir -p "$root"
		mount -t tmpfs tmpfs "$root"
		mkdir "$root/upper" "$root/work" "$root/mnt"
		mount -t overlay -o "lowerdir=/image,upperdir=$root/upper,workdir=$root/work" image "$root/mnt"
		mount -t proc proc "$root/mnt/proc"
		mount --bind /dev "$root/mnt/dev"
		mount --bind /tmp "$root/mnt/mnt"
		seen=$root/mnt/run/nvidia/driver
		mkdir -p "$seen" "$root/mnt/run/mellanox/drivers" "$root/mnt/lab" "$root/mnt/host/usr" "$root/mnt/host/lib/modules"
		mount --bind /usr "$root/mnt/host/usr"
		mount --bind "/operators/driver-$driver/lib/modules" "$root/mnt/host/lib/modules"
		mount --rbind "/operators/driver-$driver" "$seen"
		for directory in /usr/src/linux-headers-* /usr/lib/linux-kbuild-*; do
			mkdir -p "$seen$directory"
			mount --bind "$directory" "$seen$directory"
		done
		mount --bind "/operators/ofed-$core" "$root/mnt/run/mellanox/drivers"
		mount --bind /tmp/release "$root/mnt/lab"
		exec chroot "$root/mnt" "$@"
	' within "$kver" "$1" "$2" "$root" "${@:3}"
	# Only the places of the mounts are left.
	rmdir "/operators/driver-$1"/usr/{src/linux-*,lib/*,lib} 2>/dev/null || true
}

# build NAME DRIVER CORE [HOW]: builds the module NAME. HOW is a word for build.sh.
build() {
	local to=/mnt/built/$1-$2-$3${4:+-$4}
	within "$2" "$3" sh /lab/neighbours/build.sh "$kver" "$1" "$to" ${4:+"$4"}
}
mkdir -p /tmp/built "$(dirname "$built")"
cp -a /in /tmp/release
rm -rf /tmp/release/build/prebuilt
mv /tmp/release/ready /tmp/release/build/prebuilt
build nvidia_peermem 550.163.01 first
build nvidia_peermem 550.163.01 second
build nvidia_peermem 570.195.03 second
build nvidia_peermem 570.195.03 first kept
build nvidia_peermem 550.163.01 first node
build nvidia_peermem 550.163.01 second node
build nv_peer_mem 550.163.01 first
build nv_peer_mem 570.195.03 first
cp -a /tmp/built "$built"
install -D -m 755 /in/neighbours/make /operators/image/usr/bin/make
