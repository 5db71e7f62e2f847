# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# All of Python, which measures in guests, and matplotlib, which draws what came of that.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends python3-matplotlib
