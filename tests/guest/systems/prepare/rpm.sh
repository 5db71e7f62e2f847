# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The packages are installed by rpm, which does not know Debian's packages.
rpm -ivh --nodeps /in/packages/nvidia_peer_memory-[0-9]*.x86_64.rpm /in/packages/nvidia_peer_memory-kmod-*.rpm
modinfo -k "$kver" nv_peer_mem
