# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Not the module that belongs here.
module nv_peer_mem version=2.1.0 signer=somebody
look 0
only_these state
says module state warn "version 2.0.0; version 2.1.0 is installed" restart
gone /sys/module/nv_peer_mem/statistics
look 0
says module state warn "not the one that belongs to this service" restart
gone /modinfo/nv_peer_mem
loaded_module
look 0
only_these installed
says module installed bad "gone after a reboot" dkms
