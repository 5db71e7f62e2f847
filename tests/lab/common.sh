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

# say WHO TEXT: one progress line.
say() { printf '[%s] %s\n' "$1" "${*:2}"; }

# logged LOG COMMAND...: shows the log's end where the command fails.
logged() {
	"${@:2}" >"$1" 2>&1 || {
		printf -- '--- last lines of the log ---\n'
		tail -n 40 "$1"
		printf -- '--- whole log: %s ---\n' "$1"
		return 1
	} >&2
}

prepare_cache() {
	local free_kb need_gb=$LAB_DISK_GB
	# What a container may lack though its user is root.
	unshare --mount --pid --fork sh -c 'mount -t tmpfs tmpfs /mnt' 2>/dev/null ||
		die "mounting is not allowed here, though this is root: in a container it wants --privileged (or CAP_SYS_ADMIN, and no seccomp or AppArmor profile that forbids it)."
	mkdir -p "$LAB_CACHE"/{layers,log,tmp,run,results} 2>/dev/null ||
		die "cannot write to $LAB_CACHE: choose another directory with LAB_CACHE=DIR."
	free_kb=$(df -Pk "$LAB_CACHE" | awk 'NR == 2 { print $4 }')
	# Enough for a run when the layers are there, for a build when not.
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

# new_dir NAME: a directory under $LAB_CACHE/tmp in $reply, locked for as long as this
# process lives, so that nobody else takes it for a leftover.
new_dir() {
	local fd
	reply=$(mktemp -d "$LAB_CACHE/tmp/$1.XXXXXX")
	exec {fd}>"$reply/lock"
	flock "$fd"
}
