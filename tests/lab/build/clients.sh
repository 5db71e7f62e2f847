# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The lab's own programs for CUDA memory.
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
