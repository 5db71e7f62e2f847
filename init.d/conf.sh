# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads the configuration file /etc/infiniband/nv_peer_mem.conf as text, and never runs the file.
# The value of a setting may be any usual word for yes or no. A setting with another value is
# `unclear`.

conf=/etc/infiniband/nv_peer_mem.conf

# conf_lines: prints each setting as a line "NAME yes", "NAME no" or "NAME unclear". Prints a line
# "? TEXT" for each line of the file that is not understood, and for each unclear setting. A
# byte-order mark is removed. Control characters, such as tabs and carriage returns, count as
# spaces.
conf_lines() {
	{ cat "${NVPM_SYSROOT-}$conf" && echo; } 2>/dev/null | LC_ALL=C tr '\001-\011\013-\037\177' ' ' | LC_ALL=C sed -nE '
		1s/^\xef\xbb\xbf//
		s/^ *//; s/ *$//
		/^(#|$)/d
		h
		s/^export +//
		y/abcdefghijklmnopqrstuvwxyz/ABCDEFGHIJKLMNOPQRSTUVWXYZ/
		/^(ONBOOT|MARKER)([^A-Z0-9_]|$)/!b refused
		s/ *#.*//; s/["'\'']//g; s/[ ;]+$//; s/ *= */=/
		/=(YES|Y|ON|1|TRUE|ENABLED)$/s/^(ONBOOT|MARKER)=[A-Z0-9]*$/\1 yes/p
		/=(NO|N|OFF|0|FALSE|DISABLED)$/s/^(ONBOOT|MARKER)=[A-Z0-9]*$/\1 no/p
		/ (yes|no)$/d
		s/^(ONBOOT|MARKER).*/\1 unclear/p
		: refused
		g; s/^(.{80}).*/\1/; s/^/? /p'
}

# conf_value NAME: prints yes, no or unclear, which is the value in the last line that sets NAME.
# Prints nothing if no line sets NAME.
conf_value() {
	conf_lines | sed -n "s/^$1 //p" | tail -n 1
}

# conf_refused: prints the lines that are not understood, joined to one line. Prints nothing if all
# lines are understood.
conf_refused() {
	conf_lines | sed -n 's/^? //p' | sed ':more
		N
		$!b more
		s/\n/; /g'
}

# marker_wanted: succeeds if the configuration says MARKER=yes, which means that the marker must be
# loaded, too.
marker_wanted() {
	[ "$(conf_value MARKER)" = yes ]
}

# wanted_on_boot: succeeds if the last line that sets ONBOOT says yes. A boot loads the module only
# then, as in version 1.3.
wanted_on_boot() {
	[ "$(conf_value ONBOOT)" = yes ]
}

# kept_by_pod: prints the name of the module that a pod of the DaemonSet nv-peer-mem keeps. Prints
# nothing if no pod keeps one. A pod writes its state below /run each second, unless it is of an older
# image. The module then has the name nvidia_peermem; NVIDIA's own module and the marker have this name,
# too, but no statistics.
kept_by_pod() {
	modules=${NVPM_SYSROOT-}/sys/module
	kept=$(find "${NVPM_SYSROOT-}/run/nv-peer-mem/status.json" -mmin -1 -exec sed -n 's/.*"name":"\([a-z_]*\)".*/\1/p' {} + 2>/dev/null)
	case $kept in
	nv_peer_mem | nvidia_peermem) ;;
	*) [ -d "$modules/nv_peer_mem" ] || kept=nvidia_peermem ;;
	esac
	[ ! "$kept" ] || [ ! -d "$modules/$kept/statistics" ] || echo "$kept"
}
