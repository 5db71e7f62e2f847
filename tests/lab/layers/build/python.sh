# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs all of Python, for measurements in guests.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends python3
