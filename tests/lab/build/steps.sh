# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# The client that does verbs step by step, to nv_peer_mem or to NVIDIA's own module.
set -euo pipefail
gcc-14 -std=gnu17 -O2 -Wall -Wextra -Werror -pthread -I/in \
	-o /usr/local/bin/verbs-steps /in/steps.c -libverbs
