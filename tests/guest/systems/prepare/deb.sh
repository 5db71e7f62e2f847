# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The packages are installed on Debian, and dkms has built the module.
dpkg -i /in/packages/nvidia-peer-memory_*.deb /in/packages/nvidia-peer-memory-dkms_*.deb
cp /in/packages/nvidia-peer-memory-dkms_*.deb /root/installed.deb
modinfo -k "$kver" nv_peer_mem
