# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The preloaded library, as cargo makes it, for scenarios. That of packages and releases has a test of its
# own (job preload-built).
set -euo pipefail
mkdir /tmp/build
cp -a /in/.cargo /in/Cargo.* /in/src /tmp/build/
cd /tmp/build
cargo build --release --offline
install -D -m 644 -t /usr/local/lib target/release/libnvpm_preload.so
