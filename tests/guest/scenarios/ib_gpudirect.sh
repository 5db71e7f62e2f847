# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what ib_gpudirect did: its README's program, as it was and without ioctl and flag
. /lab/cuda.sh
load_gpu
load_rdma
modprobe rdma_ucm

length=1500001
for seed in 1 2 3; do
	gpuverbs pattern --seed "$seed" --length "$length" >"/tmp/contents.$seed"
done

# as_it_was WORD...: the program of that time, unchanged.
as_it_was() { LD_PRELOAD=/usr/local/lib/ib_gpudirect_preload.so ib_gpudirect-old "$@"; }

# exchange COMMAND [free HEIR]: two processes with two buffers each.
exchange() {
	local receiver rc=0
	rm -f /tmp/got.*
	"$1" receive "$ADDRESS" "$length" /tmp/got.1 /tmp/got.2 "${@:2}" >/tmp/receiver 2>&1 &
	receiver=$!
	wait_for "the receiver" sh -c 'rdma resource show cm_id | grep -q "state LISTEN"' || return 1
	"$1" send "$ADDRESS" /tmp/contents.1 /tmp/contents.2 >/tmp/sender 2>&1 || rc=$?
	wait "$receiver" || rc=$?
	cat /tmp/receiver /tmp/sender
	return "$rc"
}

# alone COMMAND: the sender as far as it gets by itself.
refused() { ! "$1" send "$ADDRESS" /tmp/contents.1 >/tmp/sender 2>&1 && cat /tmp/sender; }

said() { check "$1: $3" grep -qx "$3" "/tmp/$2"; }

for program in as_it_was ib_gpudirect; do
	check "$program: not without the module" refused "$program"
	said "$program" sender 'registering GPU memory: Bad address'
done

load_module
check "ib_gpudirect-old: not without the preload" refused ib_gpudirect-old
said ib_gpudirect-old sender 'announcing GPU memory: Inappropriate ioctl for device'
# Its flag of that time is one that software devices before 6.4 do not look at.
case $(uname -r) in
5.* | 6.[0-3].*) ;;
*) said ib_gpudirect-old sender 'registering GPU memory: Operation not supported' ;;
esac

for program in as_it_was ib_gpudirect; do
	before=$(peer nv_mem num_alloc_mrs)
	check "$program: two processes, two buffers each" exchange "$program"
	equal "$program: both have them at the same addresses" "$(grep buffer /tmp/sender)" "$(grep buffer /tmp/receiver)"
	equal "$program: registrations" $((before + 4)) "$(peer nv_mem num_alloc_mrs)"
	for buffer in 1 2; do
		check "$program: the bytes of buffer $buffer" cmp "/tmp/contents.$buffer" "/tmp/got.$buffer"
	done
done

# The last buffer is freed before it is received, and its address used again.
check "freed: it is received in the old memory" exchange as_it_was free /tmp/contents.3
check "freed: who has the address now keeps his bytes" cmp /tmp/contents.3 /tmp/got.2
unload_module

load_module persistent_api_support=0
check "revoked: it is not received" eval '! exchange as_it_was free /tmp/contents.3'
statuses() { grep -E '^(sent|received): ' "/tmp/$1" | paste -sd' '; }
equal "revoked: the receiver" 'received: success received: local QP operation error' "$(statuses receiver)"
equal "revoked: the sender" 'sent: success sent: remote operation error' "$(statuses sender)"
check "revoked: the bytes of the other buffer" cmp /tmp/contents.1 /tmp/got.1
check "revoked: who has the address now keeps his bytes" cmp /tmp/contents.3 /tmp/got.2
unload_module
