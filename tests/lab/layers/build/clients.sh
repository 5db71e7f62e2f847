# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Compiles the lab's own programs, which run or replace programs of the past, or call libraries of
# today.
set -euo pipefail
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -o /usr/local/lib/ib_gpudirect_preload.so \
	/in/clients/ib_gpudirect_preload.c
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -I/in -o /usr/local/lib/gpu_queues.so \
	/in/clients/gpu_queues.c
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -o /usr/local/lib/fabric.so /in/clients/fabric.c -lfabric
# The scenario both_ways compares the programs with what nvpm knows of them.
install -m 644 -t /usr/local/share /in/programs.table
