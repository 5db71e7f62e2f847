# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs a program that runs a container from a root file system and a file of settings, and
# Python's reader of YAML, with which the settings are made from the DaemonSet.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends crun python3-yaml
rm -rf /var/cache/apt/archives/*.deb
