# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The OFED container's openibd, as that of OFED 5.8 to 25.10 behaves (mod_load_funcs). The software
# HCA stands for the drivers of the network cards. With OPENIBD=26.07, openibd finds at run time which
# modules use the core, as in that release (unload_modules_rec).

# The modules that openibd knows, in the order in which it unloads them.
OPENIBD_UNLOADS='rdma_rxe ib_ipoib rdma_ucm rdma_cm iw_cm ib_cm ib_uverbs ib_uverbs_support ib_umad ib_mad ib_core'

# openibd_hook PATH: runs the hook PATH, which has no arguments, and ignores its result. If the hook
# may not be executed, openibd leaves the hook out without a message.
openibd_hook() {
	if [ -n "${1-}" ] && [ -x "$1" ]; then "$1" || true; fi
}

# openibd_stop: unloads each module, with the modules above it first. If a module that openibd does
# not know uses one of these modules, the function fails there. The modules before it are unloaded
# then.
openibd_stop() {
	local module
	openibd_hook "${OPENIBD_PRE_STOP-}"
	if [ "${OPENIBD-}" = 26.07 ]; then
		openibd_walk ib_core
		return
	fi
	for module in $OPENIBD_UNLOADS; do
		[ ! -d "/sys/module/$module" ] || openibd_unload "$module" || return 1
	done
}

openibd_unload() {
	local holder
	rmmod "$1" 2>/dev/null && return
	for holder in "/sys/module/$1/holders"/*; do
		[ -d "$holder" ] || continue
		holder=${holder##*/}
		case " $OPENIBD_UNLOADS " in
		*" $holder "*) openibd_unload "$holder" || return 1 ;;
		esac
	done
	rmmod "$1" || {
		echo "Unloading $1 [FAILED]"
		return 1
	}
}

# openibd_walk MODULE: unloads MODULE, and before it all modules that use it, whatever their names. It
# was not published whether the walk goes on after a module that cannot be unloaded. Here it ends, so
# a module in use is refused before the modules whose names come later in the directory.
openibd_walk() {
	local holder
	[ -d "/sys/module/$1" ] || return 0
	for holder in "/sys/module/$1/holders"/*; do
		[ ! -d "$holder" ] || openibd_walk "${holder##*/}" || return 1
	done
	rmmod "$1" || {
		echo "Unloading $1 [FAILED]"
		return 1
	}
}

# openibd_start CORE: loads the RDMA core of this directory, and the drivers of the network cards.
openibd_start() {
	local module
	modprobe -a ip6_udp_tunnel udp_tunnel
	for module in ib_core ib_uverbs_support ib_uverbs rdma_rxe; do
		[ ! -e "$1/modules/$module.ko" ] || insmod "$1/modules/$module.ko"
	done
	# The address of the network card is there from the last start.
	ip address flush dev "$(network)"
	start_rdma
	openibd_hook "${OPENIBD_POST_START-}"
}
