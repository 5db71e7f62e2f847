# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the same stress for hours: as many registrations as the host asks for
. /lab/stress.sh
stress "$(word registrations 100000)"
