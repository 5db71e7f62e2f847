# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints facts (section, name, verdict, value, advice, id) as one line for Nagios,
# and exits as its plug-ins do. IGNORED in the environment has the ids that are not
# to be judged, with commas between them.

BEGIN {
	names = split(ENVIRON["IGNORED"], ignored, ",")
	said["bad"] = said["warn"] = ""
}

function is_ignored(id,   i, stem, found) {
	for (i = 1; i <= names; i++) {
		stem = ignored[i]
		if (stem == id || (sub(/\*$/, "", stem) && substr(id, 1, length(stem)) == stem)) {
			matched[i] = 1
			found = 1
		}
	}
	return found
}

# without_match(): a wrong id would go unseen, and what it was to ignore be judged.
function without_match(   i, text) {
	for (i = 1; i <= names; i++)
		if (ignored[i] != "" && !(i in matched)) text = text "; --ignore " ignored[i] " matches nothing"
	return text
}

# figure(UNIT): the fact's value as performance data; c is a counter, B are bytes.
function figure(unit,   label) {
	if ($4 !~ /^[0-9]+$/) return
	label = $2
	gsub(/[^A-Za-z0-9_]/, "_", label)
	data = data " " label "=" $4 unit
}

{ facts++ }
$6 == "module/state" && $3 == "good" { state = $4 }
$6 == "module/state" && $4 == "unknown" { unknown = $4 ": " $5 }
$6 == "use/regions" || $6 == "use/left_behind" { figure("") }
$6 == "use/bytes" { figure("B") }
$6 == "use/registrations" || $6 == "use/revocations" || $6 ~ /^use\/failed_/ { figure("c") }

{ passed_over = is_ignored($6) }
($3 == "bad" || $3 == "warn") && !passed_over {
	said[$3] = said[$3] "; " $6 ": " $4
	many[$3]++
}

# line(WORD, TEXT, CODE): a bar is where performance data begins.
function line(word, text, code) {
	text = text without_match()
	gsub(/\|/, "/", text)
	print "NVPM " word " - " text (data == "" ? "" : " |" data)
	exit code
}

END {
	if (!facts) line("UNKNOWN", "status did not say anything", 3)
	if (unknown != "") line("UNKNOWN", unknown, 3)
	if (many["bad"]) line("CRITICAL", substr(said["bad"] said["warn"], 3), 2)
	if (many["warn"]) line("WARNING", substr(said["warn"], 3), 1)
	line("OK", state == "" ? "nothing needs attention" : state, 0)
}
