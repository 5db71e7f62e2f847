# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: two machines with a GPU each: RDMA between the GPUs, memory that goes, a machine that goes
. /lab/hosts.sh
load_neighbours
both_up
check "without the module GPU memory is refused" gpuverbs register --offset 0 --length 64K --expect EFAULT
load_module

# The buffer is a little longer than a MiB, and begins in the middle of a page.
length=1100001
received() {
	local packets=hw_counters/rcvd_pkts
	[ "$NICS" = 0 ] || packets=counters/port_rcv_packets
	cat "/sys/class/infiniband/$HCA/ports/1/$packets"
}
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

# receive_sent: posts a receive, tells the other host that it may send, and waits for the bytes.
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
unload_module

# The right host frees memory while the left host writes into the memory.
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

# Both machines are writing when the right machine loses its power. After that, only the left
# machine makes checks.
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
