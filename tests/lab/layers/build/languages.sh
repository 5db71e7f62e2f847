# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs other languages, a debugger and valgrind, whose programs run with the preloaded library.
set -euo pipefail
# The scripts of Java's packages make links of pages in this directory, which layers lack.
mkdir -p /usr/share/man/man1
apt-get update
apt-get install -y --no-install-recommends default-jdk-headless gdb golang-go nodejs valgrind
apt-get clean
