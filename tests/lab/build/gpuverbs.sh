# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The lab's own verbs client; for arm64 where its target is given.
set -euo pipefail
built=/tmp/target/release
if [ $# -gt 0 ]; then
	built=/tmp/target/$1/release
	export CARGO_BUILD_TARGET=$1 BINDGEN_EXTRA_CLANG_ARGS=--target=aarch64-linux-gnu CC=aarch64-linux-gnu-gcc-14
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$CC
fi
cp -a /in/gpuverbs /tmp/build
cd /tmp/build
LAB_GPU_H=/in/lab_gpu.h cargo build --release --offline --target-dir /tmp/target
install -D -m 755 -t /usr/local/bin "$built/gpuverbs"
