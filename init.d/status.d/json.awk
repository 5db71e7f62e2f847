# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints facts (section, name, verdict, value, advice) for machines: one JSON
# object. Values that are numbers are numbers.

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/"/, "\\\"", text)
	gsub(/[\001-\037]/, " ", text)
	return "\"" text "\""
}

function value(text) {
	return text ~ /^(0|[1-9][0-9]*)$/ ? text : quoted(text)
}

{
	facts = facts (NR > 1 ? ",\n" : "") sprintf("    {\"section\": %s, \"name\": %s, \"verdict\": %s, \"value\": %s", \
		quoted($1), quoted($2), quoted($3), value($4))
	if ($5 != "") facts = facts ", \"advice\": " quoted($5)
	facts = facts "}"
	if ($3 == "warn" || $3 == "bad") to_do++
}

END {
	printf "{\n  \"state\": %s,\n  \"exit_code\": %d,\n  \"to_do\": %d,\n  \"facts\": [\n%s\n  ]\n}\n", \
		quoted(state), code, to_do, facts
}
