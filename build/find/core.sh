# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Finds the RDMA core with peer memory that the kernel would load. The symbols of the core are read
# from its module. The core's header peer_mem.h is of one of three kinds, and src/c/nvpm.h is
# compiled for this kind. In the kind EX, a client has an extension with flags (MLNX_OFED 5.4-3 and
# later). The kind PRIVATE_DATA has two functions in place of the extension (4.1 to 5.0). The kind
# PLAIN has neither. If no header is installed, the names that the core exports tell the kind.

register=ib_register_peer_memory_client
unregister=ib_unregister_peer_memory_client

find_core() {
	core_symbols='' core_include=$top/src/include/core core_kind=EX
	read_installed_core
	[ "$core" ] || [ -n "${OFA_KERNEL:-}" ] || check_depmod ib_core "$CORE_ROOT"
	if [ -n "${OFA_KERNEL:-}" ]; then
		take_given_tree
	elif find_core_tree; then
		take_tree "$tree"
	elif [ "$core" ]; then
		take_own_header "$core"
		found OFA_KERNEL "none needed$set_aside; using the module's own header"
	elif [ -z "$without" ] && version_in "$KDIR" >/dev/null; then
		exported_kind=$(cut -f2 "$KDIR/Module.symvers" | kind_of_exports)
		take_own_header "kernel $KVER"
		found OFA_KERNEL "none needed: kernel $KVER has peer memory"
	else
		missing core "no RDMA core with peer memory for kernel $KVER${CORE_ROOT:+ below $CORE_ROOT}$stale" \
			"${other_first:-install MLNX_OFED or DOCA-OFED (package $core_packages) for it}, or give OFA_KERNEL=."
		found OFA_KERNEL "none; using the module's own header"
	fi
	[ -z "$core" ] || found "$core_module" "$core"
}

# read_installed_core: looks for the installed module that exports the functions of peer memory.
# This is ib_core, or, since OFED 24.07, ib_uverbs. If there is such a module, sets $core to the
# module's file, and $exported_kind to the kind of header that its exports tell (kind_of_exports).
# Otherwise sets $without to the file of ib_core.
read_installed_core() {
	core='' exported_kind='' core_version='' without=''
	for name in ib_core ib_uverbs; do
		file=$(module_file "$name" "$CORE_ROOT") || continue
		unpack "$file" "$work/$name.ko"
		exports "$work/$name.ko" "$file" >"$work/$name.exports"
		grep -qx "$register" "$work/$name.exports" || continue
		core=$file core_module=$name
		list_symbols "$work/$name.ko" "$file" "$name" "$register" "$unregister" >"$work/Module.symvers"
		core_version=$(version_in "$work")
	done
	if [ "$core" ]; then
		exported_kind=$(cat "$work"/ib_*.exports | kind_of_exports)
	else
		without=$(module_file ib_core "$CORE_ROOT") || :
	fi
}

# kind_of_exports: reads the exported names of a core from the standard input, and prints the kind
# of its header, or nothing if the names do not tell the kind. Each generation of the core exports
# other functions for drivers. Cores of MLNX_OFED before 4.0 need no case, because they are for
# kernels older than 4.18.
kind_of_exports() {
	awk '{ has[$1] = 1 }
		END {
			if ("ib_umem_stop_invalidation_notifier" in has) print "EX"
			else if ("ib_umem_get_peer" in has) print "PLAIN"
			else if ("ib_umem_activate_invalidation_notifier" in has) print "PRIVATE_DATA"
		}'
}

kind_of_header() {
	grep -q PEER_MEM_U64_CORE_CONTEXT "$1" ||
		die "$1 is of an RDMA core older than MLNX_OFED 4.0, which this module does not support: install a newer one (package $core_packages)."
	if grep -q peer_memory_client_ex "$1"; then
		echo EX
	elif grep -q get_context_private_data "$1"; then
		echo PRIVATE_DATA
	else
		echo PLAIN
	fi
}

# version_in DIR: prints the version of ib_register_peer_memory_client that Module.symvers in DIR
# lists; fails if the file does not list the symbol.
version_in() {
	awk -v name="$register" '$2 == name { print $1; found = 1 } END { exit !found }' "$1/Module.symvers" 2>/dev/null
}

# why_not DIR [LIST]: prints why the header in DIR does not belong to the core. Prints nothing if the
# header belongs to the core, or if this cannot be told. LIST is the directory that contains
# Module.symvers, if DIR does not.
why_not() {
	list=${2:-$1}
	listed=$(version_in "$list") || {
		echo "its Module.symvers does not list $register"
		return
	}
	if [ "$core" ] && [ "$listed" != "$core_version" ]; then
		echo "its Module.symvers has another version of $register than $core"
		return
	fi
	header_kind=$(kind_of_header "$1/include/rdma/peer_mem.h") || exit 1
	expected=${exported_kind:-$(cut -f2 "$list/Module.symvers" | kind_of_exports)}
	# PLAIN and PRIVATE_DATA need not be told apart, because neither has data after the client's
	# functions.
	case $header_kind/$expected in
	EX/EX | */) ;; # the same kind, or the expected kind is unknown
	EX/* | */EX) echo "its peer_mem.h is of another generation than the functions that ${core:-its Module.symvers} has" ;;
	esac
}

# loaded_from_elsewhere: succeeds if the running kernel has loaded another core than the installed
# core, for example from a container with OFED.
loaded_from_elsewhere() {
	[ "$core" ] && [ "$KVER" = "$(uname -r)" ] || return 1
	loaded=$(cat "/sys/module/$core_module/srcversion" 2>/dev/null) || return 1
	[ "$loaded" != "$(modinfo -F srcversion "$core")" ]
}

take_given_tree() {
	[ -e "$OFA_KERNEL/include/rdma/peer_mem.h" ] ||
		die "OFA_KERNEL=$OFA_KERNEL$core_from has no include/rdma/peer_mem.h: give the directory that has it."
	# The kernel's build system runs in another directory, so the path must be absolute.
	OFA_KERNEL=$(CDPATH='' cd -- "$OFA_KERNEL" && pwd)
	why=$(why_not "$OFA_KERNEL") || exit 1
	if [ "$why" ] && loaded_from_elsewhere; then
		core='' exported_kind=''
		why=$(why_not "$OFA_KERNEL") || exit 1
	fi
	if [ "$why" ] && [ "$core" ]; then
		die "OFA_KERNEL=$OFA_KERNEL$core_from is not of the RDMA core that kernel $KVER loads: $why. Leave OFA_KERNEL out to build for that core, or install the one that the directory belongs to."
	elif [ "$why" ]; then
		die "OFA_KERNEL=$OFA_KERNEL$core_from is not complete, $why: install MLNX_OFED or DOCA-OFED again (package $core_packages) for kernel $KVER."
	fi
	take_tree "$OFA_KERNEL"
}

# find_core_tree: sets $tree to the directory with the core's header. If there is none, fails, and
# sets $set_aside and $stale to the reasons. OFED keeps a directory for each kernel, but its link
# `default` may lead to the directory of another kernel. The tree of a kernel with its own peer
# memory may also have the header.
find_core_tree() {
	arch=$(uname -m)
	set_aside='' stale='' other_first=''
	trees=$CORE_ROOT/usr/src/ofa_kernel
	for tree in "$trees/$arch/$KVER" "$trees/$KVER" "$trees/default" "$KDIR" "$KDIR/source"; do
		[ -e "$tree/include/rdma/peer_mem.h" ] || continue
		list=$tree
		[ "$tree" != "$KDIR/source" ] || list=$KDIR
		why=$(why_not "$tree" "$list") || exit 1
		if [ "$why" ]; then
			set_aside=": $tree is not its directory ($why)"
			stale="; $tree is not complete, $why"
		elif [ "$without" ]; then
			stale="; $tree is there, but $without, which is installed, has none"
			# OFED is installed here, but depmod prefers another ib_core.
			other_first="install OFED's modules for it again (package $core_packages; dkms status), and let depmod prefer them (modinfo -n ib_core shows its choice; on RHEL the override lines of OFED in /etc/depmod.d do it, then depmod $KVER)"
		elif [ -z "$core" ] && is_stale "$tree"; then
			stale="; $tree is that of kernel $of"
		else
			return 0
		fi
	done
	return 1
}

# is_stale DIR: succeeds if DIR is the link `default` and leads to the directory of another kernel.
# Then also sets $of to that kernel. This is asked only if no core is installed, because otherwise
# why_not has compared the versions of the symbol.
is_stale() {
	[ "$1" = "$CORE_ROOT/usr/src/ofa_kernel/default" ] || return 1
	of=$(readlink -f "$1")
	of=${of##*/}
	case $of in
	"$KVER" | [!0-9]*) return 1 ;; # the directory of KVER, or `default` is no link
	esac
}

# take_own_header CORE: uses this module's own header for the RDMA core CORE, and sets $core_kind to
# the kind of header that CORE's exports tell. If they do not tell the kind, ends with an error.
take_own_header() {
	[ "$exported_kind" ] || die "$1 exports $register, but no function by which its generation is known: give OFA_KERNEL= with the header and the Module.symvers of this RDMA core."
	core_kind=$exported_kind
}

take_tree() {
	core_include=$1/include
	core_kind=$(kind_of_header "$core_include/rdma/peer_mem.h") || exit 1
	case $1 in
	"$KDIR" | "$KDIR/source")
		# The kernel's build reads its own Module.symvers in any case, so $core_symbols stays empty.
		found OFA_KERNEL "none needed: kernel $KVER has peer memory"
		;;
	*)
		[ "$core" ] || core_symbols=$1/Module.symvers
		found OFA_KERNEL "$1"
		;;
	esac
}
