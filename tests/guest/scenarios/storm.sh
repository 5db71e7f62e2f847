# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: processes that misbehave in every way leave nothing and harm nobody
# Machines: checker
. /lab/storm.sh
storms "$(word registrations 10000)"
