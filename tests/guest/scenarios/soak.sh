# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the same storms for hours: as many registrations as the host asks for
# Machines: checker
# Apart: soak
. /lab/storm.sh
storms "$(word registrations 100000)"
