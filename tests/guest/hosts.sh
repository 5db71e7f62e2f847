# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios of two hosts are written with. Both hosts run the same one, and
# what is different stands behind `left` or `right`; they barrier by what they tell
# each other (tests/lab/guest.py has the other end). A pair of guests has one scenario.

HOST=$(word host '')
last "the other host may be at its end already"
case $HOST in
left) ADDRESS=192.168.7.1 OTHER=right OTHER_ADDRESS=192.168.7.2 ;;
right) ADDRESS=192.168.7.2 OTHER=left OTHER_ADDRESS=192.168.7.1 ;;
esac
hostname "$HOST"
printf '%s %s\n' "$ADDRESS" "$HOST" "$OTHER_ADDRESS" "$OTHER" >>/etc/hosts

# left COMMAND..., right COMMAND...: on one of the two.
left() { [ "$HOST" != left ] || "$@"; }
right() { [ "$HOST" != right ] || "$@"; }

# tell KEY VALUE, hear KEY: each key is told once, by one host to the other. Who
# hears waits, and fails if the other host has ended.
tell() { ask tell "$*" >/dev/null; }
hear() {
	local answer
	answer=$(ask hear "$1")
	[ "$answer" != gone ] || return 1
	printf '%s\n' "${answer#said }"
}

# barrier NAME: waits until both hosts have come here.
barrier() {
	tell "$1-$HOST" here
	hear "$1-$OTHER" >/dev/null
}

# cut_power HOST: ends the other host at once.
cut_power() { ask kill "$1" >/dev/null; }

# in_gpu OFFSET LENGTH SEED: succeeds if the host finds the pattern in the GPU's memory.
in_gpu() { [ "$(ask pattern "$1" "$2" "$3")" = yes ]; }

# both_up: waits until the other host answers.
both_up() {
	barrier up
	wait_for "the other host" busybox ping -c 1 -W 1 "$OTHER_ADDRESS"
}

# join OFFSET LENGTH OPTION...: starts a gpuverbs endpoint on each host and connects them, each
# with that piece of its GPU's memory.
joined=0
join() {
	joined=$((joined + 1))
	hold gpuverbs endpoint --offset "$1" --length "$2" "${@:3}"
	tell "endpoint-$joined-$HOST" "$(said endpoint)"
	order connect "$(hear "endpoint-$joined-$OTHER")"
	barrier "joined-$joined"
}

# part: ends the endpoints when both hosts have come here.
part() {
	barrier "parted-$joined"
	check "its end of connection $joined ends well" ended_well
}

# order WORD...: sends an order to the endpoint of this host and waits for its end; begin_order does not wait.
order() { begin_order "$@" && until_holding; }
begin_order() {
	: >/tmp/held
	echo "$*" >&"$to_held"
}
