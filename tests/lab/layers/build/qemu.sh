# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the QEMU of Debian's backports. Devices can be other processes there (vfio-user-pci).
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends -t trixie-backports qemu-system-x86
apt-get clean
