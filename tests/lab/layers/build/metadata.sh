# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the metadata of a kernel's own Rust crates, which Debian leaves out, as an administrator
# does. The layer stays empty for a kernel without Rust.
set -euo pipefail
kver=$1 version=$2 series=$3
headers=linux-headers-$kver source=linux-source-$series

grep -q '^CONFIG_RUST=y' "/usr/src/$headers/.config" || exit 0

cd /tmp
apt-get update
apt-get download "$source=$version"
# The script asks dpkg for the versions of headers and source. dpkg uses a private list here, so that the
# list of the layers below stays unchanged for the layers above.
cp -a /var/lib/dpkg /tmp/dpkg
export DPKG_ADMINDIR=/tmp/dpkg
case $kver in
*-arm64*)
	export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
	apt-get download "$headers:arm64=$version"
	;;
esac
dpkg --unpack --force-depends ./*.deb
# The work is in memory, because a kernel's source has many small files.
TMPDIR=/tmp /in/rust-metadata "$kver"
rm "/usr/src/$source.tar.xz"
