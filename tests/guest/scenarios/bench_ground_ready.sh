# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what registrations cost on the ground ready
. /lab/bench/lib.sh
prepare_bench
measure_ground ready
