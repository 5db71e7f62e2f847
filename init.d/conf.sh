# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads /etc/infiniband/nv_peer_mem.conf as text, and never runs it. All usual words for yes and no
# are understood; other words are refused.

conf=/etc/infiniband/nv_peer_mem.conf

# conf_lines: prints the settings, as lines "NAME yes", "NAME no" or "NAME unclear", and "? TEXT"
# for each line that cannot be understood. The function ignores the mark at the beginning of UTF-8
# files, the ends of lines from Windows, tabs, and characters that would move a cursor.
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

# conf_value NAME: prints yes, no or unclear from the last line that sets NAME, or nothing.
conf_value() {
	conf_lines | sed -n "s/^$1 //p" | tail -n 1
}

# conf_refused: prints the lines that cannot be understood, as one line, or nothing.
conf_refused() {
	conf_lines | sed -n 's/^? //p' | sed ':more
		N
		$!b more
		s/\n/; /g'
}

# marker_wanted: succeeds if the marker must also be loaded.
marker_wanted() {
	[ "$(conf_value MARKER)" = yes ]
}

# wanted_on_boot: succeeds if the last line with ONBOOT wants the module at boot, as in 1.3.
wanted_on_boot() {
	[ "$(conf_value ONBOOT)" = yes ]
}
