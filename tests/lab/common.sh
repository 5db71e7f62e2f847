# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What every part of the lab uses: messages, the cache, temporary directories.

# Where guests, kernels and built modules are kept between runs.
LAB_CACHE=${LAB_CACHE:-/var/cache/nv-peer-mem-lab}

# Gigabytes that a build from nothing may need on the cache's disk.
LAB_DISK_GB=8

die() {
	printf 'lab: %s\n' "$*" >&2
	exit 1
}

# say WHO TEXT: one progress line. Whoever calls a function for what it prints has it
# say on stderr what it says meanwhile, of layers for example: answer=$(say_to=2 FUNCTION).
say() {
	printf '[%s] %s\n' "$1" "${*:2}" >&"${say_to:-1}"
}

# show_log FILE: the end of a failed step's log, and where the whole stands.
show_log() {
	{
		printf -- '--- last lines of the log ---\n'
		tail -n 40 "$1"
		printf -- '--- whole log: %s ---\n' "$1"
	} >&2
}

# with_dots WHO TEXT LOG COMMAND...: runs a long command with its output in
# LOG, and a line of progress every 15 seconds.
with_dots() {
	local who=$1 text=$2 log=$3 started=$SECONDS pid rc=0
	shift 3
	say "$who" "$text"
	"$@" >"$log" 2>&1 &
	pid=$!
	(
		# Waiting on a pipe that nobody writes to, not on a sleep that would outlive us.
		exec {quiet}<> <(:)
		while ! read -rt 15 -u "$quiet"; do
			# Nobody waits for the command any more if this program was killed.
			kill -0 $$ 2>/dev/null || kill "$pid"
			say "$who" "… $((SECONDS - started)) s: $(tail -n 1 "$log" | tr -d '\r' | cut -c 1-90)"
		done
	) &
	local ticker=$!
	wait "$pid" || rc=$?
	kill "$ticker" 2>/dev/null || true
	wait "$ticker" 2>/dev/null || true
	return "$rc"
}

# What a container may lack though its user is root.
check_rights() {
	unshare --mount --pid --fork sh -c 'mount -t tmpfs tmpfs /mnt' 2>/dev/null ||
		die "mounting is not allowed here, though this is root: in a container it wants --privileged (or CAP_SYS_ADMIN, and no seccomp or AppArmor profile that forbids it)."
}

prepare_cache() {
	local free_kb
	check_rights
	mkdir -p "$LAB_CACHE"/{layers,log,tmp,run,results,last} 2>/dev/null ||
		die "cannot write to $LAB_CACHE: choose another directory with LAB_CACHE=DIR."
	free_kb=$(df -Pk "$LAB_CACHE" | awk 'NR == 2 { print $4 }')
	# Enough for a run when the layers are there, for a build when not.
	local need_gb=$LAB_DISK_GB
	compgen -G "$LAB_CACHE/layers/base-*/root" >/dev/null && need_gb=3
	[ "$free_kb" -ge $((need_gb * 1024 * 1024)) ] ||
		die "the lab needs $need_gb GB free in $LAB_CACHE, only $((free_kb / 1024 / 1024)) GB are: make room or set LAB_CACHE=DIR."
	remove_leftovers
	prune_layers
}

# Directories of builds and runs that died: each holds a lock while it lives.
remove_leftovers() {
	local dir
	for dir in "$LAB_CACHE"/tmp/* "$LAB_CACHE"/run/*; do
		[ -d "$dir" ] || continue
		(
			exec 9>>"$dir/lock" || exit 0
			flock -n 9 && rm -rf "$dir"
		) || true
	done
}

# new_dir KIND NAME: a directory under $LAB_CACHE/KIND in $reply, locked for as
# long as this process lives, so that nobody else takes it for a leftover.
new_dir() {
	reply=$(mktemp -d "$LAB_CACHE/$1/$2.XXXXXX")
	local fd
	exec {fd}>"$reply/lock"
	flock "$fd"
}

# each FUNCTION WORD...: FUNCTION with each word, to the end; fails if one failed.
each() {
	local function=$1 word failed=0
	shift
	for word; do
		"$function" "$word" || failed=$((failed + 1))
	done
	[ "$failed" -eq 0 ]
}
