# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# nvpmcrates.sh FOREIGN KEEPER: fetches the crates of the programs in nvpm/ as their lock file names
# them, and compiles them. The words are the manifests of the other packages, which have stubs here.
set -euo pipefail
export CARGO_HOME=/opt/nvpm-crates CARGO_TARGET_DIR=/var/cache/nvpm-target
[ ! -e /in/ca-certificates.crt ] || export CARGO_HTTP_CAINFO=/in/ca-certificates.crt
mkdir -p /tmp/nvpm/src /tmp/nvpm/foreign/src /tmp/nvpm/keeper/src
cd /tmp/nvpm
cp /in/Cargo.lock .
printf '%s' "$1" >foreign/Cargo.toml
printf '%s' "$2" >keeper/Cargo.toml
: >foreign/src/lib.rs
sed '/^build = /d; /^\[\[test\]\]/,/^$/d' /in/Cargo.toml >Cargo.toml
echo 'fn main() {}' | tee src/main.rs >keeper/src/main.rs
cargo fetch --locked
cargo test --locked --offline --workspace --no-run
cargo clippy --locked --offline --workspace --all-targets
rm -r /tmp/nvpm
