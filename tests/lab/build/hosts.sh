# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# What runs on two guests.
set -euo pipefail
OMPI_CC=gcc-14 mpicc -std=gnu11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -o /usr/local/bin/gpumpi /in/hosts/gpumpi.c
