# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The kernel's Rust metadata once more, made as dkms has it made before it
# builds the module. What was said, and when, is in /metadata.
set -euo pipefail
kver=$1 version=$2 series=$3
install -D -m 755 -t /usr/lib/nvidia-peer-memory /in/rust-metadata
mkdir /metadata

apt-get update
apt-get install -y --no-install-recommends -t trixie-backports "linux-source-$series=$version"
rm -rf "/usr/src/linux-rust-$kver"
SECONDS=0
TMPDIR=/tmp /in/src/dkms/prepare "$kver"
echo "$SECONDS" >/metadata/seconds
date -u '+%F %H:%M UTC' >/metadata/made
/in/src/dkms/prepare "$kver" >/metadata/second

apt-get purge -y "linux-source-$series"
apt-get clean
rm -rf /usr/lib/nvidia-peer-memory /var/lib/apt/lists/* /var/log/*
