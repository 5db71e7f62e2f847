# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs the jobs of `test` and `all`. What runs at a time is a unit: one job, or the
# scenarios that share a guest, or what others wait for: layers that are made first.

# How many units at a time: one for each processor, and 3 GiB of memory for each.
default_slots() {
	local processors memory
	processors=$(nproc)
	memory=$(awk '/^MemTotal:/ { print int($2 / 1024 / 1024 / 3) }' /proc/meminfo)
	printf '%d\n' $((memory < 2 ? 1 : memory < processors ? memory : processors))
}

# Seconds after which a unit is ended that should have come to its end long ago.
LAB_JOB_LIMIT=${LAB_JOB_LIMIT:-3600}

# Seconds of scenarios that share one guest: short enough that guests end together.
SHARE_SECONDS=100

# ---- what is made first ----------------------------------------------------

lay_base() {
	base_layer
	list_archive "$base"
}
lay_ready() {
	lay_base
	ready_layer
}
lay_host() { hosttools_layer; }
lay_bench() { bench_layer; }
lay_guest() { guest_layers "$1" ${2:+${2//+/ }}; }
lay_packages() { packages_layer "${1:-stock}"; }
lay_system() { system_layers "${1:-stock}"; }

# prerequisite LAYERS: what must be there before these.
prerequisite() {
	local first
	case $1 in
	base) ;;
	guest:*:*) printf '%s\n' "${1%:*}" ;;
	guest:*)
		# Not at the same time as another that makes the same layers.
		first=$(first_with_kernel "${1#guest:}")
		if [ "$first" = "${1#guest:}" ]; then echo base; else echo "guest:$first"; fi
		;;
	packages | ready) echo guest:stock ;;
	packages:* | system:*) echo packages ;;
	system) echo packages ;;
	*) echo base ;;
	esac
}

# ---- units -----------------------------------------------------------------

# add_unit NAME LAYERS SECONDS FUNCTION WORD...
add_unit() {
	unit_layers[$1]=$2 unit_seconds[$1]=$3 unit_command[$1]=${*:4} unit_state[$1]=waiting
	units+=("$1")
}

# add_layers LAYERS: a unit that makes them, once; and what they need, first.
add_layers() {
	local before
	[ -z "${unit_state[layers-$1]-}" ] || return 0
	before=$(prerequisite "$1")
	[ -z "$before" ] || add_layers "$before"
	# shellcheck disable=SC2046 # words
	add_unit "layers-$1" "$before" 0 "lay_${1%%:*}" $(tr : ' ' <<<"$1" | cut -s -d' ' -f2-)
}

# plan: units of the jobs in the array `jobs`.
plan() {
	local line name layers function word key
	local -A shared=() shared_seconds=() shared_number=()
	# The longest first, or one long job at the end would leave a processor idle.
	while IFS='|' read -r _ _ name layers function word _; do
		add_layers "$layers"
		planned+=("$name")
		if [ "$function" = scenario ] && may_share "${word%@*}"; then
			key=$layers
			[ $((${shared_seconds[$key]-0} + $(expected_seconds "$name"))) -lt "$SHARE_SECONDS" ] ||
				shared_number[$key]=$((${shared_number[$key]-0} + 1)) shared_seconds[$key]=0
			shared_seconds[$key]=$((${shared_seconds[$key]-0} + $(expected_seconds "$name")))
			shared[$key ${shared_number[$key]-0}]+=" $word"
		else
			add_unit "$name" "$layers" "$(expected_seconds "$name")" run_job "$name" "$function" "$word"
			if [ "$function" = scenario ] && has_header "${word%@*}" Sleeps; then unit_sleeps[$name]=yes; fi
		fi
	done < <(for line in "${jobs[@]}"; do
		name=${line#*|}
		printf '%s|%s\n' "$(expected_seconds "${name%%|*}")" "$line"
	done | sort -srn -t'|' -k 1,1)
	for key in "${!shared[@]}"; do
		word=${shared[$key]}
		name=${key#guest:}
		# shellcheck disable=SC2086 # words
		add_unit "guest-${name/ /-}" "${key% *}" "$(seconds_of $word)" run_shared $word
	done
}

# seconds_of NAME...: expected, all of them.
seconds_of() {
	local name sum=0
	for name; do sum=$((sum + $(expected_seconds "$name"))); done
	printf '%s\n' "$sum"
}

# run_job NAME KIND WORD: a job that has its unit to itself.
run_job() {
	local said rc=0 job_key begun=$SECONDS
	job_key=$(say_to=2 "key_$2" "$3")
	! unchanged "$1" || return 0
	new_dir tmp said
	said=$reply/said
	"run_$2" "$3" >"$said" 2>&1 || rc=$?
	cat "$said"
	if [ "$rc" = 0 ]; then
		record "$1" passed $((SECONDS - begun)) "$(checks_said "$said")"
	else
		record "$1" failed $((SECONDS - begun)) 0
	fi
	rm -rf "${said%/*}"
	return "$rc"
}

# ready: a unit that can start, in $reply.
ready() {
	local name layers
	for name in "${units[@]}"; do
		[ "${unit_state[$name]}" = waiting ] || continue
		layers=${unit_layers[$name]}
		case ${layers:+${unit_state[layers-$layers]}} in
		'' | 'done')
			reply=$name
			return 0
			;;
		failed)
			unit_state[$name]=failed
			say "$name" "FAILED: the layers $layers, which it needs, could not be made: see above"
			;;
		esac
	done
	return 1
}

# busy: how many units run that do something; those that sleep take no place.
busy() {
	local name number=0
	for name in "${running[@]}"; do
		[ "${unit_sleeps[$name]-}" ] || number=$((number + 1))
	done
	printf '%d\n' "$number"
}

start() {
	# shellcheck disable=SC2086 # words
	(${unit_command[$1]}) >"$outputs/$1" 2>&1 &
	running[$!]=$1
	unit_state[$1]=running unit_begun[$1]=$SECONDS
}

# end_unit PID STATUS: shows what it said: not before its end, or lines would mix.
end_unit() {
	local name=${running[$1]}
	unset "running[$1]"
	cat "$outputs/$name"
	unit_state[$name]='done'
	if [ "$2" != 0 ]; then unit_state[$name]=failed; fi
}

# tick: something to wait for that ends after half a minute.
tick() {
	(exec {quiet}<> <(:); read -rt 30 -u "$quiet" || true) &
	ticker=$!
}

# overdue: ends units that run for longer than anything may.
overdue() {
	local pid
	for pid in "${!running[@]}"; do
		[ $((SECONDS - unit_begun[${running[$pid]}])) -gt "$LAB_JOB_LIMIT" ] || continue
		say "${running[$pid]}" "FAILED: ended after $LAB_JOB_LIMIT s (LAB_JOB_LIMIT)"
		kill "$pid"
	done
}

# step_of UNIT: of layers, where they are.
step_of() {
	case $1 in
	layers-*) tail -n 1 "$outputs/$1" | tr -d '\r' | sed 's/\[\([^]]*\)\].* s: */\1: /' | cut -c 1-60 | sed 's/^/: /' ;;
	esac
}

# progress: what is done, what runs, and how long the rest may take.
progress() {
	local name seconds left=0 now=''
	for name in "${units[@]}"; do
		case ${unit_state[$name]} in
		waiting) left=$((left + unit_seconds[$name])) ;;
		running)
			seconds=$((SECONDS - unit_begun[$name]))
			[ "$seconds" -gt "${unit_seconds[$name]}" ] || left=$((left + unit_seconds[$name] - seconds))
			now+="${now:+, }$name ($seconds s$(step_of "$name"))"
			;;
		esac
	done
	say "$queue" "$(wc -l <"$records") of ${#planned[@]} jobs done, about $(minutes $((left / LAB_JOBS + 1))) left${now:+; running: $now}"
}

# run_units: all of them. Where two guests are one unit, it runs as one: for that
# time the machine is a little fuller than it should be.
run_units() {
	local pid rc ticker
	tick
	while :; do
		while [ "$(busy)" -lt "$LAB_JOBS" ] && ready; do start "$reply"; done
		[ "${#running[@]}" -gt 0 ] || break
		rc=0
		wait -n -p pid || rc=$?
		if [ "$pid" = "$ticker" ]; then
			overdue
			tick
		else
			end_unit "$pid" "$rc"
		fi
		progress
	done
	kill "$ticker" 2>/dev/null || true
}

# ---- the commands ----------------------------------------------------------

# commit_of_checkout: what git calls it, if git is there and it is a checkout.
commit_of_checkout() {
	local commit
	commit=$(git -C "$top" rev-parse --short HEAD 2>/dev/null) || { echo unknown; return; }
	[ -z "$(git -C "$top" status --porcelain 2>/dev/null)" ] || commit+=-with-changes
	printf '%s\n' "$commit"
}

# freeze COMMAND WORD...: starts it again in a copy of the checkout, which nobody
# changes while the jobs run: so one run is of one state, and files are read once.
freeze() {
	LAB_COMMIT=$(commit_of_checkout)
	new_dir tmp checkout
	mkdir "$reply/copy" "$reply/hashes"
	tar -c -C "$top" --exclude=.git --exclude=target . | tar -x -C "$reply/copy"
	export LAB_COMMIT LAB_FROZEN=$reply/hashes
	exec bash "$reply/copy/tests/lab/lab" "$@"
}

# queue_main test|all [--last|--fresh] [--only PATTERN]
queue_main() {
	local queue=$1 only='' begun=$SECONDS failed passed jobs=() planned=() units=() outputs records
	local -A unit_layers=() unit_seconds=() unit_command=() unit_state=() unit_begun=() unit_sleeps=() running=()
	local words=("$@")
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--last)
			last_main "$queue"
			return
			;;
		--fresh) export LAB_FRESH=yes ;;
		--only)
			only=${2-}
			[ "$only" ] || die "--only wants a pattern: the jobs whose names match it (tests/run jobs lists them)."
			shift
			;;
		*) die "'$1' is no option of $queue, only: --last, --fresh, --only PATTERN." ;;
		esac
		shift
	done
	[ "${LAB_FROZEN-}" ] || freeze "${words[@]}"
	LAB_JOBS=${LAB_JOBS:-$(default_slots)}
	new_dir tmp outputs
	outputs=$reply records=$reply/records
	: >"$records"
	jobs_of "$queue" >"$outputs/jobs" || die "the jobs could not be listed."
	mapfile -t jobs < <(awk -F"|" -v only="$only" "\$2 ~ only" "$outputs/jobs")
	[ "${#jobs[@]}" -gt 0 ] || die "there are no jobs${only:+ whose name matches $only}."
	plan
	[ "${#planned[@]}" = "${#jobs[@]}" ] || die "${#jobs[@]} jobs are listed, ${#planned[@]} planned."
	say "$queue" "${#jobs[@]} jobs, $LAB_JOBS at a time; $(last_time)"
	run_units
	passed=$(grep -c ' passed ' "$records") || true
	failed=$((${#planned[@]} - passed))
	keep_last "$queue${only:+-only}" $((SECONDS - begun)) "$passed" "$failed"
	end_of_run
}

# last_time: how long the command took.
last_time() {
	local last=$LAB_CACHE/last/$queue
	if [ -e "$last" ]; then
		printf 'the last time they took %s (%d of them taken from the cache)' "$(minutes "$(last seconds)")" "$(last cached)"
	else
		printf 'not run before with this cache: layers are made first'
	fi
}

# end_of_run: the closing lines. A job that has left no record has failed.
end_of_run() {
	local name last=$LAB_CACHE/last/$queue${only:+-only}
	for name in "${planned[@]}"; do
		grep -q "^$name passed " "$records" || say "$queue" "failed: $name"
	done
	say "$queue" "took $(last seconds) s: $(last checks) checks"
	[ "$(last cached)" = 0 ] ||
		say "$queue" "$(last cached) of the results are from the cache: nothing that they depend on has changed since (--fresh runs all)"
	rm -rf "$outputs" "${LAB_FROZEN%/*}"
	printf '%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}
