# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the doubles of the operators' containers, which scenarios run.
set -euo pipefail
cp -a /in/containers /opt/operators
