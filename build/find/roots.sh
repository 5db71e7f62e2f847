# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The root directories below which the neighbours are installed. Normally both are this system's. In
# a container, the RDMA core or the driver may be those of the node or of another container, and
# their files lie below a directory that is mounted here.

# choose_roots: sets CORE_ROOT and DRIVER_ROOT without a slash at the end, so that this system's root
# is an empty string.
choose_roots() {
	CORE_ROOT=${CORE_ROOT:-} DRIVER_ROOT=${DRIVER_ROOT:-}
	CORE_ROOT=${CORE_ROOT%/} DRIVER_ROOT=${DRIVER_ROOT%/}
	check_root CORE_ROOT "$CORE_ROOT"
	check_root DRIVER_ROOT "$DRIVER_ROOT"
}

# check_root NAME DIR: ends with an error if DIR is not a directory, or not an absolute path.
check_root() {
	case $2 in
	'') ;;
	/*) [ -d "$2" ] || die "$1=$2 is no directory: give the root directory below which the modules are, as lib/modules." ;;
	*) die "$1=$2 is a relative path: give an absolute path." ;;
	esac
}
