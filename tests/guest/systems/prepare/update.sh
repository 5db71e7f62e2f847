# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What is installed is updated to our packages.
for package in /in/packages/nvidia-peer-memory{,-dkms}_*.deb; do
	dpkg -i --force-confold "$package"
done
modinfo -k "$kver" nv_peer_mem
