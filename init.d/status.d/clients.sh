# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The RDMA core, and the clients that the module has registered with it.

client_facts() {
	core_fact
	figures=/sys/module/$module/statistics
	[ -d "$root$figures" ] || return 0
	text_of "$figures/core_api" && fact "RDMA core" "built for" none "$text"
	while read -r name mode; do
		client_fact "$name" "$mode"
	done <"$root$figures/clients"
}

# core_fact: whether the core that is loaded has peer memory.
core_fact() {
	ofed=$(ofed_info -s 2>/dev/null) && ofed=", ${ofed%:}"
	if core=$(core_symbol); then
		fact "RDMA core" "peer memory" good "yes, in $core$ofed"
	elif loaded ib_core; then
		fact "RDMA core" "peer memory" bad "no: the one that is loaded does not have it" \
			"Install MLNX_OFED or DOCA-OFED and restart it (/etc/init.d/openibd restart); the kernel's own RDMA core is not enough."
	else
		fact "RDMA core" "peer memory" none "not loaded yet; $service start loads it"
	fi
}

# core_symbol: which module has the function that clients register with.
core_symbol() {
	awk '$3 == "ib_register_peer_memory_client" {
		where = $4 == "" ? "the kernel itself" : substr($4, 2, length($4) - 2)
		print where
		found = 1
		exit
	}
	END { exit !found }' "$root/proc/kallsyms" 2>/dev/null
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
