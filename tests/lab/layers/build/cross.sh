# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs compilers and libraries for arm64 on x86-64, for modules and for the programs of guests.
set -euo pipefail
dpkg --add-architecture arm64
apt-get update
# With binutils-multiarch nm, objdump and strip read modules of any processor.
apt-get install -y --no-install-recommends gcc-14-aarch64-linux-gnu gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf binutils-multiarch \
	libc6-dev:arm64 libibverbs-dev:arm64 libstd-rust-dev:arm64

# The guest's initramfs needs this busybox.
cd /tmp
apt-get download busybox-static:arm64
dpkg-deb -x busybox-static_*.deb /

# A program that asks for the machine's processor gets the guest's.
cat >/usr/local/bin/uname <<'UNAME'
#!/bin/sh
case "$*" in
-m) echo aarch64 ;;
*) exec /usr/bin/uname "$@" ;;
esac
UNAME
chmod 755 /usr/local/bin/uname
apt-get clean
