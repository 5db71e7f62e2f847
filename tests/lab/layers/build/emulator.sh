# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs a compiler and an emulator for programs of arm64.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross lld qemu-user
apt-get clean
