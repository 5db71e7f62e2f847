# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What jobs came to. $LAB_CACHE/results has a file for each job: of its last
# success what went into it (a key), seconds, checks, commit and time.
# $LAB_CACHE/last has one for `test` and one for `all`: the last run of each.

# record NAME passed|failed SECONDS CHECKS [cached]: one result of this run, to be
# counted; of a success what it needs to be taken from here the next time.
record() {
	[ "${records-}" ] || return 0
	printf '%s %s %s %s %s\n' "$1" "$2" "$3" "$4" "${5-}" >>"$records"
	if [ "$2" = passed ] && [ "${5-}" != cached ]; then
		printf '%s %s %s %s %s\n' "${job_key:--}" "$3" "$4" "$LAB_COMMIT" "$(date +%s)" >"$LAB_CACHE/results/.$1.$$"
		mv "$LAB_CACHE/results/.$1.$$" "$LAB_CACHE/results/$1"
	fi
}

# unchanged NAME: whether the job passed before with the same $job_key. It counts
# then, as taken from the cache.
unchanged() {
	local key seconds checks commit
	[ "${records-}" ] && [ ! "${LAB_FRESH-}" ] && [ ! "${SEED-}" ] || return 1
	read -r key seconds checks commit _ 2>/dev/null <"$LAB_CACHE/results/$1" || return 1
	[ "$key" = "$job_key" ] || return 1
	record "$1" passed "$seconds" "$checks" cached
	say "$1" "passed before, on $commit: $checks checks; nothing that it depends on has changed"
}

# key_of WORD...: a key of all that a job depends on.
key_of() { printf '%s\n' "$@" | sha256sum | cut -c 1-20; }

# expected_seconds NAME: how long it took the last time; a guess for a new one.
expected_seconds() {
	local seconds
	read -r _ seconds _ 2>/dev/null <"$LAB_CACHE/results/$1" || seconds=
	[[ $seconds =~ ^[0-9]+$ ]] || seconds=35
	printf '%s\n' "$seconds"
}

# checks_said FILE: how many checks or tests the lines of results there count.
checks_said() {
	awk 'match($0, /passed, [0-9]+ (checks|tests)/) { split(substr($0, RSTART, RLENGTH), w, " "); n += w[2] }
		END { print n + 0 }' "$1"
}

# minutes SECONDS: for people.
minutes() {
	if [ "$1" -lt 90 ]; then printf '%d s' "$1"; else printf '%d min' $((($1 + 30) / 60)); fi
}

# keep_last COMMAND SECONDS PASSED FAILED: the file of this run, from $records.
keep_last() {
	{
		printf 'commit %s\nended %s\nseconds %s\npassed %s\nfailed %s\ncached %s\nchecks %s\n' "$LAB_COMMIT" \
			"$(date +%s)" "$2" "$3" "$4" "$(grep -c ' cached$' "$records")" \
			"$(awk '{ n += $4 } END { print n + 0 }' "$records")"
		sed 's/^/job /' "$records"
	} >"$LAB_CACHE/last/$1.new"
	mv "$LAB_CACHE/last/$1.new" "$LAB_CACHE/last/$1"
}

# last WORD: of the last run in $last.
last() { sed -n "s/^$1 //p" "$last"; }

# last_main COMMAND: what was passed, on which commit, how long ago.
last_main() {
	local last=$LAB_CACHE/last/$1
	[ -e "$last" ] || die "tests/run $1 has not come to its end yet, with this cache."
	printf '  %-32s %-8s %8s %7s\n' job result seconds checks
	sed -n 's/^job //p' "$last" | sort | awk '{ printf "  %-32s %-8s %8s %7s %s\n", $1, $2, $3, $4, $5 }'
	printf '%s ended %s ago, took %s, on commit %s\n' "$1" "$(minutes $(($(date +%s) - $(last ended))))" \
		"$(minutes "$(last seconds)")" "$(last commit)"
	printf '%d checks; %d of the results were taken from the cache\n' "$(last checks)" "$(last cached)"
	printf '%d passed, %d failed\n' "$(last passed)" "$(last failed)"
	[ "$(last failed)" = 0 ]
}
