# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: two machines with a GPU each: RDMA between the GPUs, memory that goes, a machine that goes
# Hosts: 2
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
meet written
right check "the write's bytes are in this GPU" in_gpu 12345 "$length" 1
right order check 1
right equal "and nothing around them is touched" ok "$(said result)"
right check "they came as packets" test $(($(received) - before)) -ge $((length / 4096))

right order put 2
meet offered
left order read
left equal "read from the other GPU" IBV_WC_SUCCESS "$(said status)"
left check "the read's bytes are in this GPU" in_gpu 12345 "$length" 2
meet read

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

# between_gpus PROGRAM OPTION...: a perftest program, server on the right.
between_gpus() {
	local program=$1 options=(-d rxe0 -F "${@:2}" --mmap=/dev/nvidia-lab --mmap-offset=0) server
	if [ "$HOST" = right ]; then
		"$program" "${options[@]}" >/tmp/client 2>&1 &
		server=$!
		wait_for "the server of $program" sh -c 'ss -ltn | grep -q ":18515 "'
		tell "$program" listens
		wait "$server"
	else
		hear "$program"
		"$program" "${options[@]}" "$OTHER_ADDRESS" >/tmp/client 2>&1
	fi
}
for words in "ib_write_bw -n 50 -s 65536" "ib_read_bw -n 50 -s 65536" "ib_send_lat -n 50 -s 4096"; do
	read -r program options <<<"$words"
	before=$(peer nv_mem num_alloc_mrs)
	# shellcheck disable=SC2086 # a list of words
	check "$program" between_gpus "$program" $options
	cat /tmp/client
	equal "$program registered GPU memory here" $((before + 1)) "$(peer nv_mem num_alloc_mrs)"
done
unload_module

# Memory that is freed on the right while the left one writes into it.
load_module persistent_api_support=0
join 0 1M
stream_until_refused() {
	order put 4
	begin_order stream
	until_said streaming
	tell streaming yes
	until_holding
}
free_and_use_again() {
	hear streaming
	order free
	order allocate
	order put 5
}
left stream_until_refused
right free_and_use_again
left equal "the writer of memory that was freed" IBV_WC_REM_ACCESS_ERR "$(said status)"
meet refused
right check "no byte of it came to the memory's next owner" in_gpu 0 $((1 << 20)) 5
right equal "revocations" 1 "$(peer nv_mem num_free_callbacks)"
part

# Both write, and the right machine dies of it; nothing is asked of it afterwards.
right check_clean
meet clean
right load_module
join 0 1M
begin_order stream
until_said streaming
meet both-write
left cut_power right
until_holding
equal "the writer to a machine that died" IBV_WC_RETRY_EXC_ERR "$(said status)"
check "its registration ends as any other" order deregister
check "and so does the program" ended_well
unload_module
