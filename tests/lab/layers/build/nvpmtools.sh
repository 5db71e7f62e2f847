# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs what compiles nvpm-bin for both processors: a cross compiler, Rust's library for arm64, and
# the C library of Debian 11 in /opt/sysroots.
set -euo pipefail
dpkg --add-architecture arm64
apt-get update
apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libstd-rust-dev:arm64
sh /in/sysroots /opt/sysroots
apt-get clean
rm -rf /var/log/*
