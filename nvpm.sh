#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# nvpm COMMAND [OPTION]...: runs the program in the directory nvpm beside this file; /usr/sbin/nvpm is
# a link to it. The second Python is RHEL's own, which is there without the package python3.
set -u

# The directories of modinfo, which cron and plain users may not have in PATH.
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin
export PATH
lib=$(dirname -- "$(readlink -f -- "$0")")

# unknown TEXT: prints the line that a monitor shows, if nvpm was called as a plug-in. Monitors read
# only the standard output.
unknown() {
	[ "$command" != check ] || echo "NVPM UNKNOWN - $1"
}

command=${1-}
[ -d "$lib/nvpm" ] || {
	echo "nvpm: not installed: there is no $lib/nvpm." >&2
	unknown "not installed: there is no $lib/nvpm"
	[ "$command" != check ] || exit 3
	exit 127
}
# The program in Rust has explain, and starts this script for all other commands.
# TODO[RUST]: no package contains the program yet.
if [ "$command" = explain ] && [ -x "$lib/nvpm-bin" ]; then
	exec "$lib/nvpm-bin" "$@"
fi
for python in python3 /usr/libexec/platform-python; do
	# -B: nothing is left that the package would not remove. A chroot may have no /dev/null.
	[ -z "$(command -v "$python")" ] || exec "$python" -B "$lib/nvpm" "$@"
done
echo "nvpm: unknown: this needs Python 3. Install the package python3." >&2
unknown "this needs Python 3: install the package python3"
case $command in
status) exit 4 ;; # the code of the LSB
leave) exit 0 ;;  # a package can be removed, and leaves the module loaded
*) exit 3 ;;      # as plug-ins of Nagios say that nobody knows
esac
