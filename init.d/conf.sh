# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads the configuration file /etc/infiniband/nv_peer_mem.conf as text, and never runs the file. A
# setting may be any usual word for yes or no; a setting with another word is `unclear`.

conf=/etc/infiniband/nv_peer_mem.conf

# conf_lines: prints the settings, as lines "NAME yes", "NAME no" or "NAME unclear". Prints "? TEXT"
# for each line that is not understood, including an unclear setting. A byte-order mark is removed;
# control characters, such as tabs and carriage returns, count as spaces.
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

# conf_value NAME: prints yes, no or unclear, as the last line with NAME says, or nothing if no line
# sets NAME.
conf_value() {
	conf_lines | sed -n "s/^$1 //p" | tail -n 1
}

# conf_refused: prints the lines that are not understood, joined to one line, or nothing if there
# are none.
conf_refused() {
	conf_lines | sed -n 's/^? //p' | sed ':more
		N
		$!b more
		s/\n/; /g'
}

# marker_wanted: succeeds if the configuration says MARKER=yes: the marker must also be loaded.
marker_wanted() {
	[ "$(conf_value MARKER)" = yes ]
}

# wanted_on_boot: succeeds if the last line with ONBOOT says yes. As in version 1.3, a boot loads
# the module only then.
wanted_on_boot() {
	[ "$(conf_value ONBOOT)" = yes ]
}
