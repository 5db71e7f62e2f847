# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The oldest versions that a build accepts. docs/support.md repeats them and says which test uses
# each of them; the check `oldest` compares.

oldest_kernel=4.18
# The module uses parts of the kernel's Rust crates that 6.12 brought.
oldest_crates=6.12
# Drivers before 535 lack the call for pins that last until the module ends them.
oldest_driver=535
# Older compilers do not know the target's options that build/rust/module.sh gives.
oldest_rustc=1.78
