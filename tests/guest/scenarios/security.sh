# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nobody reads, writes or pins GPU memory of another process
load_neighbours

# others_memory TEXT: checks that no user can register the memory of another process, even with its
# address.
others_memory() {
	local address user
	hold gpuverbs inherit --offset 0 --length 1M --steps heir-register:EFAULT,heir-free:EINVAL,hold
	address=$(said address)
	check "$1: a victim is there" test -n "$address"
	for user in env as_nobody; do
		for length in 4096 64K 1M; do
			check "$1, $user: $length bytes of a victim" "$user" gpuverbs probe --address "$address" --length "$length" --expect EFAULT
		done
	done
	equal "$1: pins" 1 "$(($(nvidia_count live_pins) + $(nvidia_count live_persistent_pins)))"
	check "$1: a child has no right to it either" ended_well
}

# refused TEXT RESULT WORD...: checks that a registration by an unprivileged user ends with RESULT.
refused() { check "$1 is $2" as_nobody gpuverbs probe --expect "$2" "${@:3}"; }

absurd_ranges() {
	local pages
	refused "$1: no byte at all, at the start of a page" EINVAL --parts gpu:64K --length 0
	refused "$1: no byte at all, inside of a page" EFAULT --parts gpu:64K --skip 17 --length 0
	refused "$1: more than was allocated" EFAULT --parts gpu:64K --length 65537
	refused "$1: what lies before the memory" EFAULT --parts hole:64K,gpu:64K --skip 65535 --length 2
	refused "$1: two allocations" EFAULT --parts gpu:64K,gpu:64K --skip 65535 --length 2
	refused "$1: GPU memory, then the host's" EFAULT --parts gpu:64K,host:64K
	refused "$1: the host's, then GPU memory" EFAULT --parts host:64K,gpu:64K
	refused "$1: GPU memory with a hole in it" EFAULT --parts gpu:64K,hole:64K,gpu:64K
	# The offset has the flag LAB_GPU_NO_P2P (lab_gpu.h). The memory is then like that of
	# cuMemCreate without gpuDirectRDMACapable.
	refused "$1: GPU memory that nobody may pin" EFAULT --offset 0x40000000000 --parts gpu:64K
	refused "$1: half of all addresses" EINVAL --parts gpu:64K --length 0x8000000000000000
	refused "$1: nearly all addresses" EINVAL --parts gpu:64K --length 0xffffffffffff0000
	refused "$1: the kernel's half" EFAULT --address 0x8000000000000000 --length 64K
	refused "$1: the kernel's memory" EFAULT --address 0xffff888000000000 --length 64K
	refused "$1: the last page" EINVAL --address 0xfffffffffffff000 --length 4096
	refused "$1: the last byte" EINVAL --address 0xffffffffffffffff --length 1
	refused "$1: more pages than anybody can count" EINVAL --address 0x10000 --length 0x1000000000000
	pages=$(nvidia_count pages_not_found)
	check "$1: a tebibyte that is nobody's is EFAULT" gpuverbs probe --address 0x10000 --length 1024G --expect EFAULT
	check "$1: of which the driver was asked for single pages" test $(($(nvidia_count pages_not_found) - pages)) -le 4
	check "$1: what is the user's own is registered" as_nobody gpuverbs probe --parts gpu:64K --skip 100 --length 1000
	check "$1: and so is the host's memory" as_nobody gpuverbs probe --parts host:64K
}

for support in 1 0; do
	load_module persistent_api_support=$support
	others_memory "$support"
	absurd_ranges "$support"
	nothing_left "$support"
	unload_module
done

# One process registers memory, frees it, and another process allocates the same memory.
load_module persistent_api_support=0
for user in env as_nobody; do
	check "$user: the next owner's memory is out of reach" "$user" gpuverbs revoke --from 0 --to 8M --length 70000 --shift 100
done
unload_module
load_module
check "pinned for good, nobody is the next owner" as_nobody gpuverbs revoke --from 0 --to 8M --length 70000 --expect pinned
