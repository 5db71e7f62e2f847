# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the parts of Debian that the tests on the host need in addition to the base: the crates
# that they depend on, compiled once, and valgrind, which watches memory.
set -euo pipefail
# shellcheck source=SCRIPTDIR/crates.sh
. /in/crates.sh

install_packages librust-generator-dev librust-loom-dev librust-proptest-dev valgrind
use_debian_crates /var/cache/host-target

# Only the dependencies are compiled here, by a crate whose tests are empty.
mkdir -p /tmp/host/models /tmp/host/arithmetic /tmp/host/kernel_crate
cd /tmp/host
sed '/^kernel_crate = /d; /^\[profile.*kernel_crate\]$/,/^$/d' /in/Cargo.toml >Cargo.toml
touch models/main.rs arithmetic/main.rs kernel_crate/main.rs kernel_crate/orders.rs
cargo test --no-run
cargo clippy --all-targets
forget_stub /var/cache/host-target host
