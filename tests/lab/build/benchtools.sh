# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The crates that the report of measurements depends on: Debian's, in place of a
# crate registry, and compiled once.
set -euo pipefail

apt-get update
apt-get install --yes --no-install-recommends librust-comfy-table-dev librust-indicatif-dev \
	librust-plotters-dev librust-serde-derive-dev librust-serde-dev librust-serde-json-dev
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb

mkdir -p /root/.cargo
cat >/root/.cargo/config.toml <<'CONFIG'
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "/usr/share/cargo/registry"

[net]
offline = true

[build]
target-dir = "/var/cache/bench-target"
CONFIG

# The dependencies alone, in each way that the program is compiled in.
mkdir -p /tmp/bench/src
cd /tmp/bench
cp /in/Cargo.toml .
echo 'fn main() {}' >src/main.rs
cargo build --release
cargo test --no-run
cargo clippy --all-targets
