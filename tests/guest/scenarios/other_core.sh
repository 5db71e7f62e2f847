# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a module that was built for another RDMA core is refused before it begins, and the kernel's log says why
load_neighbours
mark_log
check "the module for another core is refused" eval "! load_built other-core"
expect_log "and the log says why" 'nv_peer_mem: disagrees about version of symbol ib_register_peer_memory_client'
equal "it is not loaded" no "$([ -e /sys/module/nv_peer_mem ] && echo yes || echo no)"
check "the module for this core is loaded" load_module
registers "and serves" ok
