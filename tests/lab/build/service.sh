# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The service, where the packages put it.
set -euo pipefail
lib=/usr/lib/nvidia-peer-memory
install -D -m 755 -t /etc/init.d /in/init.d/nv_peer_mem
install -D -m 644 -t /etc/infiniband /in/nv_peer_mem.conf
install -D -m 755 -t "$lib" /in/init.d/status /in/init.d/check /in/init.d/regions /in/init.d/selftest
install -D -m 755 -t /usr/sbin /in/init.d/nvpm
install -D -m 644 -t "$lib" /in/init.d/*.sh
install -D -m 644 -t "$lib/status.d" /in/init.d/status.d/*
install -D -m 644 -t "$lib/selftest.d" /in/init.d/selftest.d/*
