# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: processes that misbehave in every way leave nothing and harm nobody
# Own guest: minutes
# All: the debug kernel, and minutes
# Needs: debug
. /lab/stress.sh
stress "$(word registrations 10000)"
