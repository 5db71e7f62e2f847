# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Fetches the crates of the Rust program nvpm-bin as its lock file names them, and compiles them.
set -euo pipefail
export CARGO_HOME=/opt/nvpm-crates CARGO_TARGET_DIR=/var/cache/nvpm-target
[ ! -e /in/ca-certificates.crt ] || export CARGO_HTTP_CAINFO=/in/ca-certificates.crt
mkdir -p /tmp/nvpm-rs/src
cd /tmp/nvpm-rs
cp -r /in/Cargo.lock /in/foreign .
sed '/^build = /d' /in/Cargo.toml >Cargo.toml
echo 'fn main() {}' >src/main.rs
cargo fetch --locked
cargo test --locked --offline --no-run
cargo clippy --locked --offline --all-targets
rm -r /tmp/nvpm-rs
