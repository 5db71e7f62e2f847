# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the lab's own verbs client, for arm64 if that target is given. The program needs no file
# of the layer in which it is compiled.
set -euo pipefail
export CARGO_TARGET_DIR=/tmp/target
built=$CARGO_TARGET_DIR/release
if [ $# -gt 0 ]; then
	built=$CARGO_TARGET_DIR/$1/release
	export CARGO_BUILD_TARGET=$1 BINDGEN_EXTRA_CLANG_ARGS=--target=aarch64-linux-gnu
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc-14
fi
cp -a /var/cache/client-target /tmp/target
cp -a /in/gpuverbs /tmp/build
cd /tmp/build
# The versions that cargo chose on a developer's machine differ from Debian's.
rm -f Cargo.lock
LAB_GPU_H=/in/lab_gpu.h cargo build --release
install -D -m 755 -t /usr/local/bin "$built/gpuverbs"
