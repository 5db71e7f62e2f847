# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The lab's own verbs client.
set -euo pipefail
cp -a /in/gpuverbs /tmp/build
cd /tmp/build
LAB_GPU_H=/in/lab_gpu.h cargo build --release --offline --target-dir /tmp/target
install -D -m 755 -t /usr/local/bin /tmp/target/release/gpuverbs
