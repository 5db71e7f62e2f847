# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# nvpmprogram.sh ARCH: compiles the programs for this architecture, as a release has them, and puts
# them into /opt/nvpm-programs, from where releases of these sources take them.
set -euo pipefail
export NVPM_SYSROOTS=/opt/sysroots NVPM_WORK=/opt/nvpm-work/$1
cp -a /in /tmp/nvpm
# The manifest names a test, whose file must be there.
mkdir -p /tmp/nvpm/prebuilt /tmp/nvpm/tests/tables
echo 'fn main() {}' >/tmp/nvpm/tests/tables/main.rs
mv /opt/nvpm-programs/crates.* /tmp/nvpm/prebuilt/
sh /tmp/nvpm/compile release "$1"
# The layer below has more than the program and the sources of the crates, so it lies below no other.
mv /tmp/nvpm/prebuilt/* /opt/nvpm-programs/
rm -r "${NVPM_WORK:?}"
