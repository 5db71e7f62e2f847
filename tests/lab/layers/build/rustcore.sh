# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles Rust's core in /opt/rust-core, for each product and processor. Core takes nine tenths of
# the time of an assembly, and is the same for all commits.
set -euo pipefail
mkdir -p /tmp/tree/src/kernel
cp -a /in/build /in/dkms.conf /tmp/tree/
cp /in/builtins.rs /tmp/tree/src/kernel/
eval "$(sh /tmp/tree/build/find/rustc)"
for product in module preload; do
	for arch in x86_64 aarch64; do
		RUSTC=$RUSTC NVPM_LIBRARY=$NVPM_LIBRARY NVPM_ARCH=$arch NVPM_RUST_CORE=/opt/rust-core \
			sh /tmp/tree/build/rust-assembly $product --core
	done
done
