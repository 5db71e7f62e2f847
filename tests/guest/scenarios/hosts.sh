# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: two machines with a GPU each: RDMA between the GPUs, memory that goes, a machine that goes
. /lab/hosts.sh
load_gpu
load_rdma
both_up
check "without the module GPU memory is refused" gpuverbs register --offset 0 --length 64K --expect EFAULT
load_module

# A MiB and some bytes, from the middle of a page on.
length=1100001
received() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/rcvd_pkts; }
before=$(received)
join 0 "$length" --shift 12345

left order put 1
left order write
left equal "write to the other GPU" IBV_WC_SUCCESS "$(said status)"
barrier written
right check "the write's bytes are in this GPU" in_gpu 12345 "$length" 1
right order check 1
right equal "and nothing around them is touched" ok "$(said result)"
right check "they came as packets" test $(($(received) - before)) -ge $((length / 4096))

right order put 2
barrier offered
left order read
left equal "read from the other GPU" IBV_WC_SUCCESS "$(said status)"
left check "the read's bytes are in this GPU" in_gpu 12345 "$length" 2
barrier read

# receive_sent: a receive, and word to the other host once it is there.
receive_sent() {
	begin_order receive
	until_said posted
	tell posted yes
	until_holding
}
right order put 3
left receive_sent
right hear posted
right order send
equal "send between the GPUs" IBV_WC_SUCCESS "$(said status)"
left check "the bytes sent are in this GPU" in_gpu 12345 "$length" 3
part

# Each host's program has bytes of its own to move, and is held when it has.
seed=21 other_seed=12
[ "$HOST" = left ] || seed=12 other_seed=21
gpuverbs pattern --seed "$seed" --length 65536 | od -An -v -tx4 -w4 | sed 's/ */0x/' | paste -sd, >/tmp/payload

# begin PROGRAM OPTION...: a perftest program, server on the right.
begin() {
	local program=$1 options=(-d rxe0 -F "${@:2}" --mmap=/dev/nvidia-lab --mmap-offset=0 --payload_file_path=/tmp/payload)
	[ "$HOST" = right ] || { hear "$program" && options+=("$OTHER_ADDRESS"); }
	HOLD=/run/holding LD_PRELOAD=/usr/local/lib/lab-hold.so "$program" "${options[@]}" >/tmp/perftest 2>&1 &
	begun=$!
	right wait_for "the server of $program" sh -c 'ss -ltn | grep -q ":18515 "'
	right tell "$program" listens
	wait_for "the end of its transfers" test -e /run/holding
}
end() {
	rm /run/holding
	wait "$begun"
}

# What arrives is behind what leaves, but for what is read.
for words in "ib_write_bw 65536 right 65536" "ib_read_bw 65536 left 0" "ib_send_lat 4096 both 4096"; do
	read -r program size where offset <<<"$words"
	before=$(peer nv_mem num_alloc_mrs)
	begin "$program" -n 50 -s "$size"
	if [ "$where" = "$HOST" ] || [ "$where" = both ]; then
		check "$program: the other GPU's bytes are in this one" in_gpu "$offset" "$size" "$other_seed"
	fi
	equal "$program registered GPU memory here" $((before + 1)) "$(peer nv_mem num_alloc_mrs)"
	check "$program ends well" end
	cat /tmp/perftest
done
unload_module

# Memory that is freed on the right while the left one writes into it.
load_module persistent_api_support=0
stream_until_refused() {
	order put 4
	begin_order stream
	until_said streaming
	tell "streaming-$1" yes
	until_holding
}
free_and_use_again() {
	hear "streaming-$1"
	order "$1"
	order allocate
	order put 5
}
for by in free munmap; do
	join 0 1M
	left stream_until_refused "$by"
	right free_and_use_again "$by"
	left equal "the writer of memory that was freed by $by" IBV_WC_REM_ACCESS_ERR "$(said status)"
	barrier "refused-$by"
	right check "no byte of it came to the memory's next owner" in_gpu 0 $((1 << 20)) 5
	part
done
right equal "revocations" 2 "$(peer nv_mem num_free_callbacks)"

# Both write, and the right machine dies of it; nothing is asked of it afterwards.
right check_clean
barrier clean
right load_module
join 0 1M
begin_order stream
until_said streaming
barrier both-write
left cut_power right
until_holding
equal "the writer to a machine that died" IBV_WC_RETRY_EXC_ERR "$(said status)"
check "its registration ends as any other" order deregister
check "and so does the program" ended_well
unload_module
