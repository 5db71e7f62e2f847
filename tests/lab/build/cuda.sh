# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# libcuda and libcudart of the lab, where NVIDIA's packages put them, and their
# headers.
set -euo pipefail
cp -a /in/cuda /tmp/build
lib=/usr/lib/x86_64-linux-gnu

# build CRATE LIBRARY SONAME
build() {
	(cd "/tmp/build/$1" && cargo build --release --offline --target-dir /tmp/target)
	install -D -m 644 "/tmp/target/release/$2" "$lib/$3"
	ln -s "$3" "$lib/$2"
}

export LAB_GPU_H=/in/lab_gpu.h CUDA_INCLUDE=/in/cuda/include
build driver libcuda.so libcuda.so.1
build runtime libcudart.so libcudart.so.12
install -D -m 644 -t /usr/local/cuda/include /in/cuda/include/*.h
