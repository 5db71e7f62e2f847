# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The jobs of `test` and `all`: which there are, where each belongs, what it needs.
#
# A scenario, a system or a test of the packages says it in its first lines:
#   # Test: plain iommu   in `test` too, where the machine is that, or has that name
#   # All: REASON         why it, or the rest of it, is in `all` alone
# Checks and host tests say it in check.sh and host.sh.

. "$lab/host.sh"

# header FILE WORD: what stands in its line "# WORD: ...".
header() { sed -n "s/^# $2: //p" "$1"; }

# job WHERE NAME LAYERS FUNCTION WORD TEXT: a line of the list. WHERE is test, all
# or both; LAYERS what must be there before it begins (queue.sh).
job() { printf '%s|%s|%s|%s|%s|%s\n' "$@"; }

# where_of FILE NEED: whether it is in `test` too.
where_of() {
	if grep -qxF -- "$2" < <(header "$1" Test | tr ' ' '\n'); then echo both; else echo all; fi
}

# scenario_jobs: each on each machine that has what it needs; in test, on the first.
scenario_jobs() {
	local file name run need extra where
	for file in "$top"/tests/guest/scenarios/*.sh; do
		grep -q '^# Apart: ' "$file" && continue
		name=$(basename "$file" .sh)
		extra=$(scenario_layers "$name" | paste -sd+)
		for run in $(runs_of "$name"); do
			need=$(kernel_table | awk -v m="${run#*@}" '$1 == m { print $9 }')
			where=$(where_of "$file" "${run#*@}")
			# Of machines that are alike `test` takes the first.
			[ "${run#*@}" != "$(machines "$need" | head -n 1)" ] || where=$(where_of "$file" "$need")
			job "$where" "$run" "guest:${run#*@}${extra:+:$extra}" scenario "$run" "$(header "$file" Shows)"
		done
	done
}

# What has no file of its own: name, where, what it shows, why in one of them alone.
FACTS='
host|all|the module between models of its neighbours, in every interleaving; the same under valgrind|all interleavings, for a minute; test has host_quick
host_quick|test|the same models with two preemptions at most, and the arithmetic|part of host
mutants|all|each mutant of the module is killed by the test that it names|a build for each; test has mutants_few
mutants_few|test|some of the mutants|part of mutants
gpuverbs|both|the verbs client of the lab: its own tests|
rustfmt|both|Rust is formatted|
clippy|both|the module has no lints|
kunit_clippy|all|nor has it with the tests that run in the kernel|the debug kernel
gpuverbs_lint|both|the verbs client has no lints|
cuda_lint|both|nor have the double of CUDA and the examples|
bench_program|all|the report of measurements: lints and tests|crates that nothing else needs
shell|both|shell scripts have no lints|
checkpatch|both|C is in the style of the kernel|
version|both|the version is the same wherever it stands|
generations|all|module and driver double compile with the header of each driver generation|six generations are compiled; the module layer and system-detection have one
ready|all|the assembly of a release is the same wherever it is made, and fits the kernels that it says|core is compiled four times; the old kernels of test run it
bindings|both|what Rust knows of C without bindgen is what bindgen makes of it|
build_messages|both|which ground a build takes, and why; what it lacks is named, with what to install|
fallback|all|a kernel whose crates are not what the module expects: it is built without them|core is compiled, for half a minute; package-grounds shows the same with dkms
status|both|what the service reports of machines that are made of files|
selftest|both|what selftest finds, and says of each failure, with doubles of the libraries; its structures are those of the header|
defects_table|both|what docs/defects.md cites is there|
jobs_table|both|docs/tests.md is the table of the jobs as they are|
harness|both|each way to fail does fail a run|
'

# fact NAME FIELD
fact() { awk -F'|' -v name="$1" -v field="$2" '$1 == name { print $field; found = 1 } END { exit !found }' <<<"$FACTS"; }

# fact_job KIND NAME LAYERS: a line of the list.
fact_job() {
	fact "$2" 2 >/dev/null || die "tests/lab/jobs.sh has no line about $1 $2."
	job "$(fact "$2" 2)" "$1-$2" "$3" "$1" "$2" "$(fact "$2" 3)"
}

# guest_words LAYERS: what check.sh and host.sh call guest and debug is of a machine.
guest_words() {
	case $1 in
	guest) echo guest:stock ;;
	debug) echo guest:debug ;;
	programs) echo guest:stock:programs ;;
	*) printf '%s\n' "$1" ;;
	esac
}

# compile_needs MACHINE: the layers that compiling for it needs.
compile_needs() {
	case $(kernel_table | awk -v machine="$1" '$1 == machine { print $10 }') in
	compile) echo base ;;
	*) echo "guest:$1:grounds" ;;
	esac
}

# layers_at WORD NAME[@MACHINE]
layers_at() {
	case $2 in
	*@*) printf '%s:%s\n' "$1" "${2#*@}" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

other_jobs() {
	local name file machine
	for name in $(system_names); do
		file=$(system_file "$name")
		job "$(where_of "$file" "$(machine_of "$name")")" "system-$name" "$(layers_at system "$name")" system "$name" "$(header "$file" Shows)"
	done
	for name in $(package_names); do
		file=$(package_file "$name")
		job "$(where_of "$file" "$(machine_of "$name")")" "package-$name" "$(layers_at packages "$name")" package "$name" "$(header "$file" Shows)"
	done
	for name in "${HOST_JOBS[@]}"; do fact_job host "$name" "$(guest_words "$(host_layers "$name")")"; done
	for name in "${CHECKS[@]}"; do fact_job check "$name" "$(guest_words "$(check_layers "$name")")"; done
	for machine in $(compile_machines); do
		job all "compile@$machine" "$(compile_needs "$machine")" compile "$machine" "the module compiles for it, on every ground that it can have"
	done
}

# jobs_of test|all: the lines of that command's jobs.
jobs_of() {
	{ scenario_jobs && other_jobs; } | awk -F'|' -v command="$1" '$1 == "both" || $1 == command'
}

# reason_of NAME: why a job is in one of them alone.
reason_of() {
	case $1 in
	host-* | check-*) fact "${1#*-}" 4 ;;
	*@arm64*) echo "another processor" ;;
	system-*) header "$(system_file "${1#system-}")" All ;;
	package-*) header "$(package_file "${1#package-}")" All ;;
	compile@* | *@[0-9]*) echo "another kernel" ;;
	*) header "$(scenario_file "${1%@*}")" All ;;
	esac
}

# jobs_main: the table of docs/tests.md.
jobs_main() {
	local where name text why
	printf '| job | in | what it shows | why not in both |\n|---|---|---|---|\n'
	{ scenario_jobs && other_jobs; } | LC_ALL=C sort -t'|' -k 2,2 |
		while IFS='|' read -r where name _ _ _ text; do
			why=
			[ "$where" = both ] || why=$(reason_of "$name")
			[ "$where" = both ] || [ "$why" ] || die "$name says not why it is in $where alone (# All: REASON)."
			# shellcheck disable=SC2016 # quotes of Markdown
			printf '| `%s` | %s | %s | %s |\n' "$name" "${where/both/test, all}" "$text" "$why"
		done
}
