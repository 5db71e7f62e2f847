# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What tests programs of Python, and what looks for mistakes in them.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends pyflakes3 python3-pytest
