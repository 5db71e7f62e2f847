# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# nvpmcompiled.sh ARCH: packs the crates of nvpm-bin as a release does, and compiles them for this
# architecture, with a stub in place of nvpm-bin.
set -euo pipefail
export NVPM_SYSROOTS=/opt/sysroots NVPM_WORK=/opt/nvpm-work/$1 CARGO_NET_OFFLINE=true
mkdir -p /tmp/nvpm/src /tmp/nvpm/build /tmp/nvpm/data /tmp/nvpm/tests/tables
cd /tmp/nvpm
cp -r /in/Cargo.* /in/compile /in/foreign /in/keeper .
# The manifest names a test, whose file must be there.
echo 'fn main() {}' | tee src/main.rs build/main.rs >tests/tables/main.rs
: >sysroots
CARGO_HOME=/opt/nvpm-crates sh compile crates
mkdir -p /opt/nvpm-programs
cp -a prebuilt/crates.* /opt/nvpm-programs/
sh compile release "$1"
# The stub would be taken for a program with older files, because cargo compares times.
find "$NVPM_WORK" -path '*/.fingerprint/nvpm-*' -prune -exec rm -r {} +
