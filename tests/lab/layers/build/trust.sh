# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the module by which the kernel trusts another certificate.
set -euo pipefail
tree=/lib/modules/$1/build
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1
cp -a /in/trust /tmp/
make -C "$tree" M=/tmp/trust modules
install -D -m 644 -t /operators /tmp/trust/trust.ko
