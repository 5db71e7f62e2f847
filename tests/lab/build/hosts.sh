# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs that run on two guests.
set -euo pipefail
flags=(-std=gnu11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE)
OMPI_CC=gcc-14 mpicc "${flags[@]}" -o /usr/local/bin/gpumpi /in/hosts/gpumpi.c
gcc-14 "${flags[@]}" -shared -fPIC -o /usr/local/lib/lab-hold.so /in/hosts/hold.c
