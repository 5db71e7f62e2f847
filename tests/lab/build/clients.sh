# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The lab's own programs for CUDA memory.
set -euo pipefail
flags=(-std=gnu17 -O2 -Wall -Wextra -Werror -I/usr/local/cuda/include)
lib=/usr/local/lib
gcc-14 "${flags[@]}" -shared -fPIC -o "$lib/lab-gpu-contents.so" /in/clients/gpu_contents.c
gcc-14 "${flags[@]}" -shared -fPIC -o "$lib/ib_gpudirect_preload.so" /in/clients/ib_gpudirect_preload.c
gcc-14 "${flags[@]}" -o /usr/local/bin/ucx_cuda /in/clients/ucx_cuda.c -lcuda -lucp -lucs
