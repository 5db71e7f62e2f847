# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the lab's libcuda and libnvidia-ml, in the directory of NVIDIA's packages, and the header
# of libcuda.
set -euo pipefail
lib=/usr/lib/x86_64-linux-gnu
cd /in
# library NAME SOURCE...: makes the library NAME of these sources.
library() {
	gcc-14 -std=gnu17 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC -Wl,-soname,"$1" -Wl,-z,defs \
		-I. -Iinclude -o "$lib/$1" "${@:2}"
}
library libcuda.so.1 cuda.c vmm.c gpu_simulated.c
library libnvidia-ml.so.1 nvml.c
ln -s libcuda.so.1 "$lib/libcuda.so"
install -D -m 644 -t /usr/local/cuda/include include/cuda.h
