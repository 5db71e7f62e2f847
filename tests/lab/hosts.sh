# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Two guests at a time, called left and right, each with a GPU of its own, and a
# cable between their network cards. Both run the same scenario, one that says
# "# Hosts: 2" (tests/guest/hosts.sh has what it is written with). What one must
# know of the other goes through here: files under told/, one for each thing.

# run_hosts NAME@MACHINE [WORDS]: as run_scenario, with a line for each guest.
run_hosts() {
	local name=${1%@*} pair host rc=0 guests=() started seed
	seed=$(choose_seed)
	layers_of "$1"
	new_dir run "$name"
	pair=$reply
	mkdir "$pair/told"
	started=$SECONDS
	for host in left right; do
		(boot_host "$host" "$1" "lab.scenario=$name lab.seed=$seed ${2-}") &
		guests+=($!)
	done
	for host in "${guests[@]}"; do
		wait "$host" || rc=1
	done
	rm -rf "$pair"
	return "$rc"
}

# boot_host HOST NAME@MACHINE WORDS: one of the two.
boot_host() {
	local scenario_label="$2 $1" rc=0
	run=$pair/$1
	mkdir "$run"
	furnish_run
	# Of its own: the shell would remark on a guest that was killed.
	{ plug_in "$1" && boot_guest "lab.host=$1 $3"; } 2>"$run/errors" || rc=$?
	[ "$rc" = 0 ] || cat "$run/errors" >&2
	: >"$pair/$1.over"
	show_end "$2-$1" "$rc" "scenario $2"
}

# plug_in HOST: its end of the cable. The left one listens; the right one cannot
# begin before that.
plug_in() {
	local cable=addr.type=unix,addr.path=$pair/net
	if [ "$1" = left ]; then
		guest_net=stream,server=on,$cable
	else
		guest_net=stream,server=off,$cable
		guest_mac=52:54:00:12:34:57
		until [ -S "$pair/net" ]; do
			[ ! -e "$pair/left.over" ] || return 1
			pause
		done
	fi
}

# pause: a tenth of a second, without a process that would outlive this one.
pause() { read -rt 0.1 <> <(:) || true; }

# host_tell "KEY VALUE": keeps it for the other guest.
host_tell() {
	local key value
	read -r key value <<<"$1"
	printf '%s\n' "$value" >"$pair/told/.$key.${run##*/}"
	mv "$pair/told/.$key.${run##*/}" "$pair/told/$key"
	printf 'told\n'
}

# host_hear KEY: waits until it was told; `gone` if that will never be.
host_hear() {
	local since=$SECONDS
	until [ -e "$pair/told/$1" ]; do
		if compgen -G "$pair/*.over" >/dev/null || [ $((SECONDS - since)) -gt "$LAB_TIMEOUT" ]; then
			[ ! -e "$pair/told/$1" ] || break
			printf 'gone\n'
			return
		fi
		pause
	done
	printf 'said %s\n' "$(cat "$pair/told/$1")"
}

# host_kill HOST: the other guest loses its power.
host_kill() {
	: >"$pair/$1/killed"
	kill -KILL "$(cat "$pair/$1/pid")"
	printf 'killed\n'
}
