# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the next boot does.
put /etc/infiniband/nv_peer_mem.conf 'ONBOOT="no"'
look 0
only_these ''
says module "on boot" none "ONBOOT=no"
put /etc/infiniband/nv_peer_mem.conf 'ONBOOT=yes'
gone /etc/systemd
look 0
only_these "on boot"
says module "on boot" warn "not enabled" chkconfig
mkdir -p "$root/run/systemd/system"
look 0
says module "on boot" warn "not enabled" systemctl
gone /run
put /etc/debian_version 13
look 0
says module "on boot" warn "not enabled" update-rc.d
put /etc/rc3.d/S20nv_peer_mem ''
look 0
only_these ''
