# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The jobs of `test` and `all`: which there are, where each belongs, what it needs.
#
# A scenario, a system or a test of the packages says it in its first lines:
#   # Test: plain iommu   in `test` too, where the machine is that (systems and
#                         packages: # Test: yes)
#   # All: REASON         why it, or the rest of it, is in `all` alone
# Checks and host tests say it in check.sh and host.sh.

. "$lab/host.sh"

# header FILE WORD: what stands in its line "# WORD: ...".
header() { sed -n "s/^# $2: //p" "$1"; }

# job WHERE NAME LAYERS FUNCTION WORD TEXT: a line of the list. WHERE is test, all
# or both; LAYERS what must be there before it begins (prepare_LAYERS of queue.sh).
job() { printf '%s|%s|%s|%s|%s|%s\n' "$@"; }

# where_of FILE NEED: whether it is in `test` too.
where_of() {
	if grep -qw -- "$2" < <(header "$1" Test); then echo both; else echo all; fi
}

# scenario_jobs: each on each machine that has what it needs; in test, on the first.
scenario_jobs() {
	local file name run need extra where
	for file in "$top"/tests/guest/scenarios/*.sh; do
		grep -q '^# Apart: ' "$file" && continue
		name=$(basename "$file" .sh)
		extra=$(scenario_layers "$name" | paste -sd+)
		for run in $(runs_of "$name"); do
			need=$(kernel_table | awk -v m="${run#*@}" '$1 == m { print $7 }')
			where=all
			# Of machines that are alike `test` takes the first.
			[ "${run#*@}" != "$(machines "$need" | head -n 1)" ] || where=$(where_of "$file" "$need")
			job "$where" "$run" "guest:${run#*@}${extra:+:$extra}" scenario "$run" "$(header "$file" Shows)"
		done
	done
}

other_jobs() {
	local name file machine
	for name in $(system_names); do
		file=$(system_file "$name")
		job "$(where_of "$file" yes)" "system-$name" system system "$name" "$(header "$file" Shows)"
	done
	for name in $(package_names); do
		file=$top/tests/packages/$name.sh
		job "$(where_of "$file" yes)" "package-$name" packages package "$name" "$(header "$file" Shows)"
	done
	for name in "${HOST_JOBS[@]}"; do
		job "$(host_where "$name")" "host-$name" host host "$name" "$(host_text "$name")"
	done
	for name in "${CHECKS[@]}"; do
		job "$(check_where "$name")" "check-$name" "$(check_layers "$name")" check "$name" "$(check_text "$name")"
	done
	for machine in $(kernel_table | awk '$8 == "compile" { print $1 }'); do
		job all "compile@$machine" base compile "$machine" "the module compiles for it"
	done
}

# jobs_of test|all: the lines of that command's jobs.
jobs_of() {
	{ scenario_jobs && other_jobs; } | awk -F'|' -v command="$1" '$1 == "both" || $1 == command'
}

# reason_of NAME: why a job is in `all` alone.
reason_of() {
	case $1 in
	*@7.* | *@[0-6].*) echo "another kernel" ;;
	*@*) header "$(scenario_file "${1%@*}")" All ;;
	system-*) header "$(system_file "${1#system-}")" All ;;
	package-*) header "$top/tests/packages/${1#package-}.sh" All ;;
	host-*) host_why "${1#host-}" ;;
	check-*) check_why "${1#check-}" ;;
	esac
}

# jobs_main: the table of docs/tests.md.
jobs_main() {
	local where name text why
	printf '| job | in | what it shows | why in `all` alone |\n|---|---|---|---|\n'
	{ scenario_jobs && other_jobs; } | LC_ALL=C sort -t'|' -k 2,2 |
		while IFS='|' read -r where name _ _ _ text; do
			why=
			case $where in
			all) why=$(reason_of "$name") ;;
			test) why="part of another job there" ;;
			esac
			printf '| `%s` | %s | %s | %s |\n' "$name" "${where/both/test, all}" "$text" "$why"
		done
}
