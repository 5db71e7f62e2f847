# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the lab's libcuda, in the directory of NVIDIA's packages, and its header.
set -euo pipefail
lib=/usr/lib/x86_64-linux-gnu
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC -Wl,-soname,libcuda.so.1 -Wl,-z,defs \
	-I/in -I/in/include -o "$lib/libcuda.so.1" /in/cuda.c
ln -s libcuda.so.1 "$lib/libcuda.so"
install -D -m 644 -t /usr/local/cuda/include /in/include/cuda.h
