# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: processes that misbehave in every way leave nothing and harm nobody
. /lab/stress.sh
stress "$(word registrations 2500)"
