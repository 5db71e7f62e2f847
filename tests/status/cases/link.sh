# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# PCIe links that are not what both ends can, or not what the device can.
port=pci0000:00/0000:00:01.0
switch=$port/0000:01:00.0
card=$switch/0000:02:01.0/0000:04:00.0
gpu=$switch/0000:02:00.0/0000:03:00.0
section="RDMA device mlx5_0"
link $card 32.0 8 32.0 16
look 0
only_these link
says "$section" link warn "32.0 GT/s x8: both ends can x16" "Take the card out"
link $card 16.0 16 32.0 16
look 0
only_these link
says "$section" link warn "16.0 GT/s x16: both ends can 32 GT/s" speed
link $switch/0000:02:01.0 16.0 16
look 0
only_these ''
says "$section" link good "16.0 GT/s x16"
link $switch/0000:02:01.0 32.0 1
link $card 32.0 1 32.0 16
look 0
only_these link
says "$section" link warn "the slot has x1, the device can x16" "wider slot"

# A GPU is slow when it has nothing to do, but never narrow.
new_machine
link $gpu 2.5 16 32.0 16
look 0
only_these ''
says "GPU 0000:03:00.0" link good "2.5 GT/s x16, can 32 GT/s: GPUs are slower when idle"
link $gpu 2.5 4 32.0 16
look 0
only_these link
says "GPU 0000:03:00.0" link warn "both ends can x16"

# Between the root port and the switch.
new_machine
link $switch 8.0 16 32.0 16
look 0
only_these "link 0000:01:00.0"
says PCI "link 0000:01:00.0" warn "8.0 GT/s x16: both ends can 32 GT/s"

# What no link is said of.
new_machine
gone /sys/devices/$card/current_link_width
look 0
only_these ''
if grep "^$section|link|" "$scratch/facts"; then fail "a link that nobody knows"; else ok; fi
