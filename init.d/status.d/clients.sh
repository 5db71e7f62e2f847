# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The RDMA core, and the clients that the module has registered with it.

client_facts() {
	core_fact
	[ -d "$root$figures" ] || return 0
	api_fact
	while read -r name mode; do
		client_fact "$name" "$mode"
	done <"$root$figures/clients"
}

# core_fact: whether the core that is loaded has peer memory. Leaves in $core
# where, for detection.sh.
core_fact() {
	read_symbols
	ofed=$(ofed_info -s 2>/dev/null)
	ofed=${ofed%:}
	core=$(core_symbol)
	if [ -n "$core" ]; then
		fact "RDMA core" "peer memory" good "yes, in $core${ofed:+, $ofed}"
	elif loaded ib_core; then
		fact "RDMA core" "peer memory" bad "no: the one that is loaded does not have it" \
			"$install_core"
	else
		fact "RDMA core" "peer memory" none "not loaded yet; $service start loads it"
	fi
}

# read_symbols: lines of /proc/kallsyms that matter here. It is long: read once.
read_symbols() {
	symbols=$(grep -wF -e ib_register_peer_memory_client -e ib_umem_dmabuf_get "$root/proc/kallsyms" 2>/dev/null)
}

# has_symbol NAME
has_symbol() {
	printf '%s\n' "$symbols" | grep -qw "$1"
}

# core_symbol: which module has the function that clients register with, if any.
core_symbol() {
	printf '%s\n' "$symbols" | grep -wm 1 ib_register_peer_memory_client |
		awk '{ print $4 == "" ? "the kernel itself" : substr($4, 2, length($4) - 2) }'
}

# api_fact: the generation of the interface that the module was built for and
# loaded for, and whether it is that of the installed MLNX_OFED.
api_fact() {
	text_of "/sys/module/$module/parameters/peerdirect_support" || text=0
	loaded_for=$text
	text_of "$figures/core_api" || return 0
	built_for=$text
	case $built_for in "MLNX_OFED 4.1"*) loaded_for=1 ;; esac
	case $loaded_for:$ofed in
	*:) fact "RDMA core" "built for" none "$built_for" ;;
	0:*[A-Za-z]-4.[1-9]-* | 0:*[A-Za-z]-5.0-*)
		fact "RDMA core" "built for" bad "$built_for: this older core skips the clients" \
			"echo 'options nv_peer_mem peerdirect_support=1' >>/etc/modprobe.d/nv_peer_mem.conf && $service restart"
		;;
	0:* | 1:*[A-Za-z]-4.[1-9]-* | 1:*[A-Za-z]-5.0-*) fact "RDMA core" "built for" good "$built_for" ;;
	*)
		fact "RDMA core" "built for" warn "$built_for, but loaded for MLNX_OFED 4.1 to 5.0" \
			"Remove peerdirect_support=1 from /etc/modprobe.d, or rebuild the module: $(rebuild). Then $service restart"
		;;
	esac
}

# client_fact NAME MODE
client_fact() {
	case $2 in
	persistent) what="persistent: memory is pinned until it is deregistered" ;;
	*) what="revocable: a registration ends when its memory is freed" ;;
	esac
	if [ ! -d "$root$peers" ]; then
		fact "RDMA core" "client $1" none "$what"
	elif [ -d "$root$peers/$1" ]; then
		fact "RDMA core" "client $1" good "$what"
	else
		fact "RDMA core" "client $1" bad "the RDMA core does not list it (ls $peers)" "$service restart"
	fi
}
