# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios of whole systems ask, beside tests/guest/lib.sh.

loaded() { [ -d /sys/module/nv_peer_mem ]; }

# says COMMAND...: what it prints, to its standard output and the console; its
# exit code is kept in $code.
says() {
	code=0
	said=$("$@" 2>&1) || code=$?
	printf '$ %s\n%s\n(exit code %s)\n' "$*" "$said" "$code"
}
