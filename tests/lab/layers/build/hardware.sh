# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the tests for hardware, with the client compiled, because an emulated guest would compile
# it in minutes.
set -euo pipefail
mkdir -p /opt/hardware/tests
cp -a /in /opt/hardware/tests/hardware
chown -R root:root /opt/hardware
chmod -R go-w /opt/hardware
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Wno-unused-parameter -Werror -o /opt/hardware/hardware-client \
	/opt/hardware/tests/hardware/client/*.c -libverbs -lpthread
