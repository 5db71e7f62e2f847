# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints facts (section, name, verdict, value, advice, id) for machines: one JSON
# object. Values that are numbers are numbers. What it means is in
# docs/monitoring.md; whoever changes that counts `schema` up.

BEGIN { schema = 2 }

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
	facts = facts (NR > 1 ? ",\n" : "") sprintf("    {\"id\": %s, \"section\": %s, \"name\": %s, \"verdict\": %s, \"value\": %s", \
		quoted($6), quoted($1), quoted($2), quoted($3), value($4))
	if ($5 != "") facts = facts ", \"advice\": " quoted($5)
	facts = facts "}"
	if ($3 == "warn" || $3 == "bad") to_do++
}

END {
	printf "{\n  \"schema\": %d,\n  \"host\": %s,\n  \"kernel\": %s,\n  \"time\": %s,\n", \
		schema, quoted(host), quoted(kernel), quoted(time)
	printf "  \"state\": %s,\n  \"exit_code\": %d,\n  \"to_do\": %d,\n  \"facts\": [\n%s\n  ]\n}\n", \
		quoted(state), code, to_do, facts
}
