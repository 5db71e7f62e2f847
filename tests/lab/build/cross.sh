# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What compiles for arm64 on x86-64: modules, and the programs that guests run.
set -euo pipefail
dpkg --add-architecture arm64
apt-get update
# With binutils-multiarch nm, objdump and strip read modules of any processor.
apt-get install -y --no-install-recommends gcc-14-aarch64-linux-gnu gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf binutils-multiarch \
	libc6-dev:arm64 libibverbs-dev:arm64 libstd-rust-dev:arm64

# For the guest's initramfs.
cd /tmp
apt-get download busybox-static:arm64
dpkg-deb -x busybox-static_*.deb /

# Programs that ask for the machine's processor are to find the guest's.
cat >/usr/local/bin/uname <<'UNAME'
#!/bin/sh
case "$*" in
-m) echo aarch64 ;;
*) exec /usr/bin/uname "$@" ;;
esac
UNAME
chmod 755 /usr/local/bin/uname
apt-get clean
