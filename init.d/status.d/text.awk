# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Prints facts (section, name, verdict, value, advice) for people. What is said of
# several GPUs or RDMA devices is one line with their names; an advice that goes
# for several lines is given at the first; distances are a matrix.

BEGIN {
	mark["good"] = "ok"; mark["warn"] = " !"; mark["bad"] = "!!"; mark["none"] = "  "
	long["PIX"] = "under one PCIe switch"
	long["PXB"] = "under several PCIe switches, without passing the CPU"
	long["PHB"] = "one root complex: through the CPU"
	long["NODE"] = "two root complexes of one NUMA node"
	long["SYS"] = "across NUMA nodes, or nobody says which"
}

function join(list, item) { return list == "" ? item : list ", " item }

# wrapped(INDENT, LIST): its items, in lines of a terminal.
function wrapped(indent, list,   item, n, i, line, out) {
	n = split(list, item, ", ")
	for (i = 1; i <= n; i++) {
		if (line != "" && length(line item[i]) > 90) { out = out indent line ",\n"; line = "" }
		line = join(line, item[i])
	}
	return out indent line "\n"
}

# Sections with the name of a device are parts of one.
{
	section = $1
	member = ""
	if (match($1, /^(GPU|RDMA device) /)) {
		member = substr($1, RLENGTH + 1)
		section = substr($1, 1, RLENGTH - 1) "s"
		if (!((section, member) in is_member)) {
			is_member[section, member] = 1
			members[section] = join(members[section], member)
			number[section]++
		}
	}
	if (!(section in known)) { known[section] = 1; sections[++last] = section }
}

$1 == "distance" && $2 !~ / nearest$/ { split($2, pair, " "); cell(pair[1], pair[2], $4); next }

{
	# A device says a thing once, so what is the same is another one's.
	key = section FS $2 FS $3 FS $4 FS $5
	if (member == "" || !(key in line_of)) {
		line_of[key] = ++lines
		place[lines] = section; name[lines] = $2; verdict[lines] = $3; value[lines] = $4; advice[lines] = $5
	}
	if (member != "") { of[line_of[key]] = join(of[line_of[key]], member); count[line_of[key]]++ }
}

function cell(row, column, text) {
	if (!(row in is_row)) { is_row[row] = 1; row_name[++rows] = row }
	if (!(column in is_column)) { is_column[column] = 1; column_name[++columns] = column }
	distance[row, column] = text
	used[text] = 1
}

# advise(LINE): what to do, and for which other lines too.
function advise(line,   others, i) {
	if (advice[line] == "" || advice[line] in advised) return ""
	advised[advice[line]] = 1
	for (i = 1; i <= lines; i++)
		if (i != line && advice[i] == advice[line]) others = join(others, (of[i] == "" || index(of[i], ",") ? "" : of[i] " ") name[i])
	return "        -> " advice[line] "\n" (others == "" ? "" : wrapped("           ", "the same for: " others))
}

function matrix(   width, c, r, i, out, row) {
	width = 4
	for (c = 1; c <= columns; c++) if (length(column_name[c]) > width) width = length(column_name[c])
	out = sprintf("      %-14s", "")
	for (c = 1; c <= columns; c++) out = out sprintf(" %-" width "s", column_name[c])
	out = out "  nearest\n"
	for (r = 1; r <= rows; r++) {
		for (i = 1; i <= lines && !(place[i] == "distance" && name[i] == row_name[r] " nearest"); i++) ;
		row = sprintf("  %2s  %-14s", mark[verdict[i]], row_name[r])
		for (c = 1; c <= columns; c++) row = row sprintf(" %-" width "s", distance[row_name[r], column_name[c]])
		out = out row "  " value[i] "\n" advise(i)
	}
	c = split("PIX PXB PHB NODE SYS", row_name, " ")
	for (r = 1; r <= c; r++) if (row_name[r] in used) out = out sprintf("      %-4s  %s\n", row_name[r], long[row_name[r]])
	return out
}

# show(LINE): once. Lines of one name come together, whatever device was first.
function show(i,   some) {
	if (i in shown) return
	shown[i] = 1
	some = count[i] < number[place[i]]
	printf "  %2s  %-24s %s%s\n", mark[verdict[i]], name[i], value[i], some && count[i] == 1 ? " [" of[i] "]" : ""
	if (some && count[i] > 1) printf "%s", wrapped("        of ", of[i])
	printf "%s", advise(i)
}

END {
	for (i = 1; i <= lines; i++) if (verdict[i] == "warn" || verdict[i] == "bad") to_do++
	printf "nv_peer_mem: %s; %s\n", state, \
		to_do ? "lines that need attention: " to_do " (!! does not work, ! works but could do better)" : "nothing needs attention"
	for (s = 1; s <= last; s++) {
		section = sections[s]
		printf "\n%s\n", section == "distance" ? "distance of GPU and RDMA device" : section
		if (members[section] != "") printf "%s", wrapped("      ", members[section])
		if (section == "distance") { printf "%s", matrix(); continue }
		for (i = 1; i <= lines; i++)
			if (place[i] == section)
				for (j = i; j <= lines; j++) if (place[j] == section && name[j] == name[i] && (of[i] != "" || i == j)) show(j)
	}
}
