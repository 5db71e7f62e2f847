# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# nvpmcompiled.sh ARCH FOREIGN KEEPER: packs the crates of nvpm-bin as a release does, and compiles them
# for this architecture, with stubs in place of the programs. The other words are the manifests of the
# packages foreign and keeper.
set -euo pipefail
export NVPM_SYSROOTS=/opt/sysroots NVPM_WORK=/opt/nvpm-work/$1 CARGO_NET_OFFLINE=true
mkdir -p /tmp/nvpm/src /tmp/nvpm/build /tmp/nvpm/data /tmp/nvpm/tests/tables /tmp/nvpm/foreign/src /tmp/nvpm/keeper/src
cd /tmp/nvpm
cp -r /in/Cargo.* /in/compile .
printf '%s' "$2" >foreign/Cargo.toml
printf '%s' "$3" >keeper/Cargo.toml
: >foreign/src/lib.rs
# The manifest names a test, whose file must be there.
echo 'fn main() {}' | tee src/main.rs build/main.rs keeper/src/main.rs >tests/tables/main.rs
: >sysroots
CARGO_HOME=/opt/nvpm-crates sh compile crates
mkdir -p /opt/nvpm-programs
cp -a prebuilt/crates.* /opt/nvpm-programs/
sh compile release "$1"
# The stubs would be taken for programs with older files, because cargo compares times.
find "$NVPM_WORK" -path '*/.fingerprint/nvpm-*' -prune -exec rm -r {} +
