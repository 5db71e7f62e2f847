# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What releases have for machines without Rust (docs/grounds.md), in /ready: made
# twice, in two places, and the same byte for byte.
set -euo pipefail

# make_ready DIR
make_ready() {
	mkdir -p "$1"
	cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/src "$1/"
	for arch in x86_64 aarch64; do NVPM_ARCH=$arch make -C "$1" ready; done
	rm -rf "$1/src/ready/free.build"
}
make_ready /tmp/build
make_ready /tmp/another/place
diff -r /tmp/build/src/ready /tmp/another/place/src/ready
# Nobody can tell where it was made.
if grep -nE '/(tmp|in|usr|root|home|build)/' /tmp/build/src/ready/*.S; then exit 1; fi
cp -a /tmp/build/src/ready /ready
