# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# nvpmprogram.sh ARCH: compiles nvpm-bin for this architecture, as a release has it, and puts it into
# /opt/nvpm-programs, from where releases of these sources take it.
set -euo pipefail
export NVPM_SYSROOTS=/opt/sysroots NVPM_WORK=/opt/nvpm-work/$1
cp -a /in /tmp/nvpm-rs
mkdir /tmp/nvpm-rs/prebuilt
mv /opt/nvpm-programs/crates.* /tmp/nvpm-rs/prebuilt/
sh /tmp/nvpm-rs/compile release "$1"
# The layer below has more than the program and the sources of the crates, so it lies below no other.
mv /tmp/nvpm-rs/prebuilt/* /opt/nvpm-programs/
rm -r "${NVPM_WORK:?}"
