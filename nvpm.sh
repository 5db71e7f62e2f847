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

# check_program: ends with an error if nvpm-bin is missing, or is for another processor. The shell would
# read such a file as a script.
check_program() {
	[ -e "$lib/nvpm-bin" ] || {
		echo "nvpm: $command needs the program nvpm-bin, and there is no $lib/nvpm-bin: the package was made where neither the program of a release nor cargo 1.85 was. Install a package that was made from a release; or take the file nvpm-VERSION-$(uname -m) of a release, which runs by itself; or, in a checkout, run make nvpm." >&2
		exit 127
	}
	case $(od -An -tx1 -j18 -N1 "$lib/nvpm-bin" 2>/dev/null) in
	*3e) made_for=x86_64 ;;
	*b7) made_for=aarch64 ;;
	*) made_for='no processor that is known' ;;
	esac
	[ "$made_for" = "$(uname -m)" ] || {
		echo "nvpm: $command needs the program nvpm-bin for $(uname -m), and $lib/nvpm-bin is for $made_for. Install the package for this processor; or, in a checkout, run make nvpm." >&2
		exit 126
	}
}

command=${1-}
[ -d "$lib/nvpm" ] || {
	echo "nvpm: not installed: there is no $lib/nvpm." >&2
	unknown "not installed: there is no $lib/nvpm"
	[ "$command" != check ] || exit 3
	exit 127
}
# The program in Rust has these commands, and starts this script for all others.
case $command in
explain | compare)
	check_program
	exec "$lib/nvpm-bin" "$@"
	;;
esac
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
