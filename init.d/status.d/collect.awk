# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Reads facts (section, name, verdict, value, advice) and prints them with a sixth
# field, their identifier: section/name in small letters, without blanks. What the
# user may not read comes last, as one fact: that is no defect of the machine.

function slug(text) {
	text = tolower(text)
	gsub(/[^a-z0-9.:_-]+/, "_", text)
	gsub(/^_|_$/, "", text)
	return text
}

# Two facts of one name would be one to a monitor: the second becomes NAME_2.
function show(section, name, verdict, value, advice,   id) {
	id = slug(section) "/" slug(name)
	if (used[id]++) id = id "_" used[id]
	printf "%s\t%s\t%s\t%s\t%s\t%s\n", section, name, verdict, value, advice, id
}

$3 == "unread" {
	if (!($4 in seen)) unread = unread (unread == "" ? "" : ", ") $4
	seen[$4] = 1
	next
}

{ show($1, $2, $3, $4, $5) }

END {
	if (unread != "")
		show("report", "not read", "none", unread, "Only root can read that: run it as root to see it.")
}
