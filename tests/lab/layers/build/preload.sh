# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the preloaded library for scenarios, by cargo. Job preload-built tests the library of
# packages and releases.
set -euo pipefail
mkdir /tmp/build
cp -a /in/.cargo /in/Cargo.* /in/src /tmp/build/
cd /tmp/build
cargo build --release --offline
install -D -m 644 -t /usr/local/lib target/release/libnvpm_preload.so
