# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what ib_gpudirect, libgdsync and gdrcopy did, one after another in one guest
for name in ib_gpudirect gdrcopy libgdsync; do
	say "$name"
	# shellcheck disable=SC1090 # one of the three
	(. "/lab/scenarios/$name.sh")
done
