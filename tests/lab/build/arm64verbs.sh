# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The lab's own verbs client, for guests of arm64.
set -euo pipefail
target=aarch64-unknown-linux-gnu
cp -a /in/gpuverbs /tmp/build
cd /tmp/build
export CC=aarch64-linux-gnu-gcc-14 BINDGEN_EXTRA_CLANG_ARGS=--target=aarch64-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$CC
LAB_GPU_H=/in/lab_gpu.h cargo build --release --offline --target "$target" --target-dir /tmp/target
install -D -m 755 -t /usr/local/bin "/tmp/target/$target/release/gpuverbs"
