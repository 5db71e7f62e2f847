# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests on the host take from Debian beside the base: the crates that
# they depend on, in place of a crate registry and compiled once, and the
# programs that apply the mutants and watch memory.
set -euo pipefail

apt-get update
apt-get install --yes --no-install-recommends librust-loom-dev librust-proptest-dev patch valgrind
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
target-dir = "/var/cache/host-target"
CONFIG

# The dependencies alone: tests without tests.
mkdir -p /tmp/host/models /tmp/host/arithmetic
cd /tmp/host
cp /in/Cargo.toml /in/build.rs .
touch models/main.rs arithmetic/main.rs
cargo test --no-run
cargo clippy --all-targets
