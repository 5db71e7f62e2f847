# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: how many translation entries a ConnectX holds for a registration, beside nvidia-peermem
# Gpu: 2048
load_neighbours
echo $((1 << 40)) >"$NVIDIA/bar1_bytes"

# entries LENGTH: registers contiguous or fragmented memory, and prints the number of entries that
# the device gets.
entries() {
	local before
	before=$(nic count entries)
	gpuverbs register --offset 0 --length "$1" >/dev/null
	echo $(($(nic count entries) - before))
}

# count_all: prints the entries of each size and layout.
count_all() {
	local layout length found=''
	for layout in contiguous holes2m holes64k; do
		for length in 64K 1M 16M 1G; do
			# In the widest layout, 1 GiB does not fit into the GPU.
			[ "$layout $length" != "holes64k 1G" ] || length=512M
			found+="$(with layout "$layout" entries "$length") "
		done
	done
	echo "$found"
}

declare -A found
for way in joins separate; do
	[ "$way" = joins ] || echo "separate_entries 1" >"$CORE/switch"
	for module in nv_peer_mem nvidia-peermem; do
		modprobe "$module"
		found[$module-$way]=$(count_all)
		say "$module, the core $way entries: ${found[$module-$way]}"
		rmmod "$module"
	done
done
echo "separate_entries 0" >"$CORE/switch"
equal "where the core joins neighbours, both modules give the device the same" \
	"${found[nvidia-peermem-joins]}" "${found[nv_peer_mem-joins]}"
equal "where the core does not, this module's entries are as few" \
	"${found[nv_peer_mem-joins]}" "${found[nv_peer_mem-separate]}"
read -r -a ours <<<"${found[nv_peer_mem-separate]}"
read -r -a theirs <<<"${found[nvidia-peermem-separate]}"
check "and nvidia-peermem's are more for 1 GiB" test "${theirs[3]}" -gt "${ours[3]}"
