# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Programs that run on two guests.
set -euo pipefail
cd /in/hosts
flags=(-std=gnu11 -O2 -Wall -Wextra -Werror -I/in)
OMPI_CC=gcc-14 mpicc "${flags[@]}" -o /usr/local/bin/gpumpi gpumpi.c gpu.c
gcc-14 "${flags[@]}" -o /usr/local/bin/gpusync gpusync.c gpu.c -lrdmacm -libverbs
gcc-14 "${flags[@]}" -D_GNU_SOURCE -shared -fPIC -o /usr/local/lib/lab-hold.so hold.c gpu.c
