# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What the module's tests on the host take from Debian: the crates that they
# depend on, as sources, and the program that applies their mistakes.
set -euo pipefail

apt-get update
apt-get install --yes --no-install-recommends librust-loom-dev librust-proptest-dev patch
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
