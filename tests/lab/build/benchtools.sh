# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The crates that the report of measurements depends on, compiled once.
set -euo pipefail
# shellcheck source=SCRIPTDIR/crates.sh
. /in/crates.sh

install_packages librust-comfy-table-dev librust-indicatif-dev librust-plotters-dev \
	librust-serde-derive-dev librust-serde-dev librust-serde-json-dev
use_debian_crates /var/cache/bench-target

# The dependencies alone, in each way that the program is compiled in.
mkdir -p /tmp/bench/src
cd /tmp/bench
cp /in/Cargo.toml .
echo 'fn main() {}' >src/main.rs
cargo build --release
cargo test --no-run
cargo clippy --all-targets
forget_stub /var/cache/bench-target bench-report
