# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What people write into the configuration file is read as they mean it, or refused.

# read_as NAME VALUE LINES: what the service takes LINES, in the words of printf, for.
read_as() {
	local got
	mkdir -p "$root/etc/infiniband"
	printf '%b' "$3" >"$root/etc/infiniband/nv_peer_mem.conf"
	# shellcheck disable=SC2016 # for the shell inside
	got=$(dash -c '. "$1/init.d/conf.sh"; conf_value "$2"' sh "$top" "$1" 2>&1)
	if [ "$got" = "$2" ]; then ok; else fail "'$3': expected '$2', got '$got'"; fi
}

for setting in ONBOOT MARKER; do
	for no in no NO No n off 0 false FALSE '"no"' "'no'" 'no # for now' 'no;' '" no "'; do
		read_as "$setting" no "$setting=$no\n"
	done
	for yes in yes YES y on 1 true True '"yes"'; do
		read_as "$setting" yes "$setting=$yes\n"
	done
	read_as "$setting" no "$setting = no\n"
	read_as "$setting" no "export $setting=no\n"
	read_as "$setting" no "${setting,,}=no\n"
	read_as "$setting" no "\0357\0273\0277$setting=no\n"
	read_as "$setting" no "# a\r\n$setting=no\r\n"
	read_as "$setting" no "\t$setting=no"
	read_as "$setting" no "$setting=yes\n$setting=no\n"
	read_as "$setting" '' "# $setting=yes\n"
	for refused in 'nope' '' 'yes no' "\$(true)"; do
		read_as "$setting" unclear "$setting=yes\n$setting=$refused\n"
	done
	read_as "$setting" unclear "$setting=yes\n$setting no\n"
done

# It is text: nothing in it is run.
read_as ONBOOT yes "touch $root/run-by-mistake\nONBOOT=yes\n"
if [ ! -e "$root/run-by-mistake" ]; then ok; else fail "the file was run"; fi

# What is not understood is shown, and nothing is loaded because of it.
put /etc/infiniband/nv_peer_mem.conf $'ONBOOT=perhaps\nONBOT=yes'
look 0
says module configuration warn 'ONBOOT=perhaps; ONBOT=yes' 'Correct it'
says module "on boot" warn "no ONBOOT=yes"
gone /etc/infiniband
look 0
says module "on boot" warn "no ONBOOT=yes"
# shellcheck disable=SC2016 # for the shell inside
if dash -c '. "$1/init.d/conf.sh"; wanted_on_boot || marker_wanted' sh "$top"; then fail "loaded without a file"; else ok; fi
put /etc/infiniband/nv_peer_mem.conf $'ONBOOT=perhaps\033[2J'
# shellcheck disable=SC2016 # for the shell inside
case $(dash -c '. "$1/init.d/conf.sh"; conf_refused' sh "$top") in
"ONBOOT=perhaps [2J") ok ;;
*) fail "the line that start shows" ;;
esac
