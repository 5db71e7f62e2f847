# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the kernel's RDMA core and software HCA with peer memory, and installs them as MLNX_OFED
# does: ib_core.ko, for older kernels ib_uverbs.ko, and rdma_rxe.ko, which take precedence over the
# kernel's modules, and the tree `default` with header and Module.symvers for other modules. Trees
# beside it have the headers of earlier generations.
#
# Also builds rdma_rxe.ko for the kernel's own RDMA core, in /lib/nv_peer_mem/inbox. It imports
# dma-bufs.
set -euo pipefail
kver=$1 series=$2
tree=/lib/modules/$kver/build
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1

# header OTHERS: prints the header without the parts of these generations (a regular expression).
header() { sed -E "/^#ifdef LAB_($1)\$/,/^#endif\$/d; /^#ifdef LAB_/,/^#endif\$/{/^#/d}" /in/ofed/include/peer_mem.h; }

infiniband=drivers/infiniband

# source_of DIRECTORY PART...: copies parts of the kernel's RDMA stack to DIRECTORY.
source_of() {
	local part
	mkdir -p "$1/include/trace" "$1/include/rdma" "$1/$infiniband/sw"
	for part in "${@:2}"; do cp -r "/usr/src/linux-lab-$series/$infiniband/$part" "$1/$infiniband/$part"; done
}

# build_in DIRECTORY: builds the adapted copy, with the lab's files added to its parts.
build_in() {
	cp /in/ofed/rxe/* "$1/$infiniband/sw/rxe/"
	cp /in/ofed/Kbuild "$1/"
	cp /in/compat.h /in/ofed/include/lab_device.h "$1/include/"
	make -C "$tree" -j "$(nproc)" M="$1" modules
}

source_of /tmp/ofed sw/rxe core
/in/ofed/adapt /tmp/ofed
cp /in/ofed/core/* "/tmp/ofed/$infiniband/core/"
header G2 >/tmp/ofed/include/rdma/peer_mem.h
build_in /tmp/ofed

source_of /tmp/inbox sw/rxe
/in/ofed/adapt --dmabuf /tmp/inbox
if grep -q rxe_dmabuf "/tmp/inbox/$infiniband/sw/rxe/Makefile"; then
	build_in /tmp/inbox
	mkdir -p /lib/nv_peer_mem/inbox
	strip --strip-debug -o /lib/nv_peer_mem/inbox/rdma_rxe.ko "/tmp/inbox/$infiniband/sw/rxe/rdma_rxe.ko"
fi
cd /tmp/ofed

# The kernel's other RDMA modules are loaded above these modules. So these modules must export each
# symbol of the kernel's own versions, with the same version number.
built=$(find $infiniband -name '*.ko' | sed 's/\.ko$//' | paste -sd' ')
wrong=$(awk -v built=" $built " '
	NR == FNR { ours[$2] = $1; next }
	index(built, " " $3 " ") && !($2 in ours && ours[$2] == $1) {
		print "  " $2 ": " $1 " in the kernel, " ($2 in ours ? ours[$2] : "missing") " here"
	}' Module.symvers "$tree/Module.symvers")
[ -z "$wrong" ] || {
	printf 'The kernel'\''s RDMA modules would refuse these: an edit or a header changed what its files see. Symbols of other versions:\n%s\n' "$wrong"
	exit 1
}

mkdir -p "/lib/modules/$kver/updates"
for module in "$infiniband"/core/*.ko "$infiniband"/sw/rxe/*.ko; do
	# Debug information would make the modules ten times as large, and the guest slower.
	strip --strip-debug -o "/lib/modules/$kver/updates/${module##*/}" "$module"
done
for generation in default:G2 g2:G3B g3a:'G2|G3B'; do
	installed=/usr/src/ofa_kernel/${generation%%:*}
	mkdir -p "$installed/include/rdma"
	header "${generation#*:}" >"$installed/include/rdma/peer_mem.h"
	install -m 644 Module.symvers "$installed/"
done
depmod "$kver"
