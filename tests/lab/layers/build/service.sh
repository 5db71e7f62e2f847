# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the service where the packages put it.
set -euo pipefail
lib=/usr/lib/nvidia-peer-memory
install -D -m 755 -t /etc/init.d /in/init.d/nv_peer_mem
install -D -m 644 -t /etc/infiniband /in/nv_peer_mem.conf
mkdir -p "$lib"
cp -a /in/init.d/conf.sh "$lib"
cp "/opt/nvpm-programs/$(uname -m)" "$lib/nvpm-bin"
ln -s "$lib/nvpm-bin" /usr/sbin/nvpm
