# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints facts (section, name, verdict, value, advice) for people.

BEGIN { mark["good"] = "ok"; mark["warn"] = " !"; mark["bad"] = "!!"; mark["none"] = "  " }

{
	if ($1 != section) text = text "\n" $1 "\n"
	section = $1
	text = text sprintf("  %s  %-24s %s\n", mark[$3], $2, $4)
	if ($5 != "") text = text sprintf("        -> %s\n", $5)
	if ($3 == "warn" || $3 == "bad") to_do++
}

END {
	printf "nv_peer_mem: %s; %s\n", state, \
		to_do ? "lines that need attention: " to_do " (!! does not work, ! works but could do better)" : "nothing needs attention"
	printf "%s", text
}
