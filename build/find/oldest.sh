# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Sets the oldest versions that a build accepts. docs/support.md lists the same versions, and the
# test of each version. The check `oldest` compares this file with that page.

oldest_kernel=4.18
# The module uses parts of the kernel's Rust crates that Linux 6.12 introduced.
oldest_crates=6.12
# Drivers before 535 lack the function for persistent pins, which last until the module ends them.
oldest_driver=535
# Older compilers reject some of the target's options in build/rust/module.sh.
oldest_rustc=1.78
