# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads /etc/infiniband/nv_peer_mem.conf, which is text and never run: whatever
# people write for yes and no in such files is understood, or refused.

conf=/etc/infiniband/nv_peer_mem.conf

# conf_lines: what it says, as lines "NAME yes", "NAME no" or "NAME unclear", and
# "? TEXT" for each line that cannot be understood.
conf_lines() {
	{ cat "${NVPM_SYSROOT-}$conf"; } 2>/dev/null | LC_ALL=C awk '
		BEGIN {
			word["yes"] = word["y"] = word["on"] = word["1"] = word["true"] = word["enabled"] = "yes"
			word["no"] = word["n"] = word["off"] = word["0"] = word["false"] = word["disabled"] = "no"
		}
		NR == 1 { sub(/^\357\273\277/, "") } # the mark that some editors begin UTF-8 with
		{
			text = $0
			gsub(/[\001-\037\177]/, " ", text) # the end of lines from Windows, tabs, what would move a cursor
			sub(/^ +/, "", text)
			sub(/ +$/, "", text)
		}
		text == "" || text ~ /^#/ { next }
		{
			name = text
			sub(/^export +/, "", name)
			match(name, /^[A-Za-z0-9_]*/)
			rest = substr(name, RLENGTH + 1)
			name = toupper(substr(name, 1, RLENGTH))
			value = rest ~ /^ *=/ ? tolower(rest) : ""
			sub(/^ *= */, "", value)
			sub(/ *#.*/, "", value)
			gsub(/["\047]/, "", value)
			sub(/^ +/, "", value)
			sub(/[ ;]+$/, "", value)
			known = name == "ONBOOT" || name == "MARKER"
			if (known && value in word) {
				print name, word[value]
				next
			}
			if (known)
				print name, "unclear"
			print "?", substr(text, 1, 80)
		}'
}

# conf_value NAME: yes, no or unclear, as the last line about it says; nothing if
# there is none.
conf_value() {
	conf_lines | sed -n "s/^$1 //p" | tail -n 1
}

# conf_refused: the lines that cannot be understood, as one; nothing where all can.
conf_refused() {
	conf_lines | awk '/^[?] / { printf "%s%s", n++ ? "; " : "", substr($0, 3) } END { if (n) print "" }'
}

# marker_wanted: whether the module that only has a name is to be loaded, too.
marker_wanted() {
	[ "$(conf_value MARKER)" = yes ]
}

# wanted_on_boot: whether the module is to be loaded at boot: only where that is
# said last, as in 1.3.
wanted_on_boot() {
	[ "$(conf_value ONBOOT)" = yes ]
}
