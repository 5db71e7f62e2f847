# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the examples as a user does.
set -euo pipefail
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -I/usr/local/cuda/include \
	-o /usr/local/bin/register_gpu-c /in/examples/c/register_gpu.c -lcuda -libverbs
cp -a /in/examples/rust /tmp/rust
(cd /tmp/rust && cargo build --release --offline --target-dir /tmp/target)
install -m 755 /tmp/target/release/register-gpu /usr/local/bin/register_gpu-rust
