# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the crates that the lab's verbs client depends on, once for all clients.
set -euo pipefail
# shellcheck source=SCRIPTDIR/crates.sh
. /in/crates.sh

install_packages librust-anyhow-dev librust-clap-dev librust-libc-dev librust-nix-dev
use_debian_crates /var/cache/client-target

# Only the dependencies are compiled here.
mkdir -p /tmp/client/src
cd /tmp/client
cp /in/Cargo.toml .
echo 'fn main() {}' >src/main.rs
cargo build --release
forget_stub /var/cache/client-target gpuverbs
