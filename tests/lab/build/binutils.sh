# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The assembler and linker of another suite, in /opt/binutils: they make other symbols
# of the same assembly than those of the lab's own.
set -euo pipefail
suite=$1
apt-get update
cd /tmp
apt-get download "binutils-x86-64-linux-gnu/$suite" "libbinutils/$suite"
mkdir -p /opt/binutils/bin
for package in ./*.deb; do dpkg-deb -x "$package" /opt/binutils; done
for tool in /opt/binutils/usr/bin/x86_64-linux-gnu-*; do ln -s "$tool" "/opt/binutils/bin/${tool##*-gnu-}"; done
LD_LIBRARY_PATH=/opt/binutils/usr/lib/x86_64-linux-gnu /opt/binutils/bin/as --version
rm -rf /var/lib/apt/lists/*
