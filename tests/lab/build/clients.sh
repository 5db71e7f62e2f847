# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The lab's own programs for CUDA memory, and the examples, as a user builds them.
set -euo pipefail
cuda=/usr/local/cuda/include
warn=(-std=gnu17 -O2 -Wall -Wextra -Werror)
lib=/usr/local/lib

gcc-14 "${warn[@]}" -shared -fPIC -I/in -o "$lib/lab-gpu-buffers.so" /in/clients/gpu_buffers.c
gcc-14 "${warn[@]}" -shared -fPIC -I"$cuda" -o "$lib/lab-gpu-contents.so" /in/clients/gpu_contents.c
gcc-14 "${warn[@]}" -I"$cuda" -o /usr/local/bin/ucx_cuda /in/clients/ucx_cuda.c -lcuda -lucp -lucs

# As it was, and without what the kernel of its time wanted.
gcc-14 "${warn[@]}" -I"$cuda" -DOLD_KERNEL -o /usr/local/bin/ib_gpudirect-old /in/clients/ib_gpudirect.c -lcuda -lrdmacm -libverbs
gcc-14 "${warn[@]}" -I"$cuda" -o /usr/local/bin/ib_gpudirect /in/clients/ib_gpudirect.c -lcuda -lrdmacm -libverbs
gcc-14 "${warn[@]}" -shared -fPIC -o "$lib/ib_gpudirect_preload.so" /in/clients/ib_gpudirect_preload.c

gcc-14 "${warn[@]}" -I"$cuda" -o /usr/local/bin/register_gpu-c /in/examples/c/register_gpu.c -lcuda -libverbs
cp -a /in/examples/rust /tmp/rust
(cd /tmp/rust && cargo build --release --offline --target-dir /tmp/target)
install -m 755 /tmp/target/release/register-gpu /usr/local/bin/register_gpu-rust
