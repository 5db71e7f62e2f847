# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a system
boot_1() {
	check "rxe" sh -c 'rdma link show | grep -q "state ACTIVE"'
	touch /etc/bare
}
boot_2() {
	check "survived" test -e /etc/bare
}
