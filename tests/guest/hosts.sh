# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios with two hosts. Both hosts run the same scenario. A command after the word
# `left` or `right` runs only on the host with that name. The hosts send each other words through
# the lab (tests/lab/run/guest.py). A pair of guests runs only one scenario.

HOST=$(word host '')
last "the other host may be at its end already"
case $HOST in
left) ADDRESS=192.168.7.1 OTHER=right OTHER_ADDRESS=192.168.7.2 ;;
right) ADDRESS=192.168.7.2 OTHER=left OTHER_ADDRESS=192.168.7.1 ;;
esac
hostname "$HOST"
printf '%s %s\n' "$ADDRESS" "$HOST" "$OTHER_ADDRESS" "$OTHER" >>/etc/hosts

# left COMMAND..., right COMMAND...: runs COMMAND if this is the left or the right host.
left() { [ "$HOST" != left ] || "$@"; }
right() { [ "$HOST" != right ] || "$@"; }

# tell KEY VALUE: tells the other host a value. Each key may be told only once. hear KEY: waits for
# the other host's value and prints it. Fails if the other host has ended.
tell() { ask tell "$*" >/dev/null; }
hear() {
	local answer
	answer=$(ask hear "$1")
	[ "$answer" != gone ] || return 1
	printf '%s\n' "${answer#said }"
}

# barrier NAME: waits until both hosts have called `barrier NAME`.
barrier() {
	tell "$1-$HOST" here
	hear "$1-$OTHER" >/dev/null
}

# cut_power HOST: ends the other host at once.
cut_power() { ask kill "$1" >/dev/null; }

# in_gpu OFFSET LENGTH SEED: succeeds if the lab finds the pattern in the GPU's memory.
in_gpu() { [ "$(ask pattern "$1" "$2" "$3")" = yes ]; }

# both_up: waits until the other host answers.
both_up() {
	barrier up
	wait_for "the other host" busybox ping -c 1 -W 1 "$OTHER_ADDRESS"
}

# join OFFSET LENGTH OPTION...: starts a gpuverbs endpoint on each host, with this piece of the
# GPU's memory, and connects the endpoints.
joined=0
join() {
	joined=$((joined + 1))
	hold gpuverbs endpoint --offset "$1" --length "$2" "${@:3}"
	tell "endpoint-$joined-$HOST" "$(said endpoint)"
	order connect "$(hear "endpoint-$joined-$OTHER")"
	barrier "joined-$joined"
}

# part: ends the endpoints after both hosts have called `part`.
part() {
	barrier "parted-$joined"
	check "its end of connection $joined ends well" ended_well
}

# order WORD...: sends an order to the endpoint of this host, and waits until the order is carried
# out. begin_order does not wait.
order() { begin_order "$@" && until_holding; }
begin_order() {
	: >/tmp/held
	echo "$*" >&"$to_held"
}
