# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the lab's own programs, which run or replace programs of the past.
set -euo pipefail
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -o /usr/local/lib/ib_gpudirect_preload.so \
	/in/clients/ib_gpudirect_preload.c
