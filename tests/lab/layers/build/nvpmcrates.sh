# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Fetches the crates of the programs in nvpm/ as their lock file names them, and compiles them.
set -euo pipefail
export CARGO_HOME=/opt/nvpm-crates CARGO_TARGET_DIR=/var/cache/nvpm-target
[ ! -e /in/ca-certificates.crt ] || export CARGO_HTTP_CAINFO=/in/ca-certificates.crt
mkdir -p /tmp/nvpm/src
cd /tmp/nvpm
cp -r /in/Cargo.lock /in/foreign /in/keeper .
sed '/^build = /d; /^\[\[test\]\]/,/^$/d' /in/Cargo.toml >Cargo.toml
echo 'fn main() {}' >src/main.rs
cargo fetch --locked
cargo test --locked --offline --workspace --no-run
cargo clippy --locked --offline --workspace --all-targets
rm -r /tmp/nvpm
