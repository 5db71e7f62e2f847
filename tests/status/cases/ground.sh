# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the module's Rust stands on: that of the one that is loaded, or else installed.
put /sys/module/nv_peer_mem/statistics/ground free
look 0
only_these ''
says module ground none "free: Rust's core library alone"
put /sys/module/nv_peer_mem/statistics/ground ready
look 0
says module ground none "ready: Rust's core library alone, compiled before"
gone /sys/module/nv_peer_mem
look 3
says module ground none "kernel: the kernel's own Rust crates"

# None is known: of an older version, or of none.
module nv_peer_mem version=1.3
look 3
if grep '^module|ground|' "$scratch/facts"; then fail "a ground that nobody knows"; else ok; fi
