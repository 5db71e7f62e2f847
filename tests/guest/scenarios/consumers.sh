# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Layers: programs service
# Shows: what ib_gpudirect, libgdsync and gdrcopy did, one after another in one guest
# All: for programs of the past
for name in ib_gpudirect gdrcopy libgdsync; do
	say "$name"
	# shellcheck disable=SC1090 # one of the three
	(. "/lab/scenarios/$name.sh")
done
