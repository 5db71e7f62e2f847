# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the assembly of a release, for machines without Rust (docs/building.md), in /ready. The
# check `ready` makes the assembly again, and compares.
set -euo pipefail
export NVPM_RUST_CORE=/opt/rust-core
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src /tmp/build/
make -C /tmp/build prebuilt
mkdir /ready
cp /tmp/build/build/prebuilt/*.S /ready/
