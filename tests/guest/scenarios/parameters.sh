# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: parameters mean what nvidia-peermem's mean; wrong ones are refused in words
load_neighbours

# loads EXPECTED_CLIENTS [PARAMETER...]: loads the module with the parameters, and checks which
# clients the module registers.
loads() {
	load_module "${@:2}"
	equal "clients with '${*:2}'" "$1" "$(client_names)"
	unload_module
}
loads "nv_mem nv_mem_fixed nv_mem_revocable"
loads "nv_mem nv_mem_fixed nv_mem_revocable" persistent_api_support=1
loads "nv_mem nv_mem_nc" persistent_api_support=0
loads "nv_mem nv_mem_fixed nv_mem_revocable" peerdirect_support=1
load_module persistent_api_support=0
for parameter in persistent_api_support peerdirect_support; do
	equal "$parameter can be read" 0 "$(cat "/sys/module/nv_peer_mem/parameters/$parameter")"
done
unload_module
for wrong in persistent_api_support=2 peerdirect_support=-1 persistent_api_support=yes peerdirect_support=; do
	check "$wrong is refused" eval "! modprobe nv_peer_mem $wrong 2>/dev/null"
	expect_log "and the log says what is right" "nv_peer_mem: $wrong: the values of this parameter are 0 and 1"
done
equal "nothing is registered" '' "$(client_names)"
