# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the kernel's RDMA core and software HCA with peer memory, and installs them as MLNX_OFED
# does: ib_core.ko, for older kernels ib_uverbs.ko, and rdma_rxe.ko, which take precedence over the
# kernel's modules, and the tree `default` with header and Module.symvers for other modules. Trees
# beside it have the headers of earlier generations.
set -euo pipefail
kver=$1 series=$2
tree=/lib/modules/$kver/build
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1

# header OTHERS: prints the header without the parts of these generations (a regular expression).
header() { sed -E "/^#ifdef LAB_($1)\$/,/^#endif\$/d; /^#ifdef LAB_/,/^#endif\$/{/^#/d}" /in/core/include/peer_mem.h; }

infiniband=drivers/infiniband

mkdir -p /tmp/ofed/include/trace /tmp/ofed/include/rdma /tmp/ofed/$infiniband/sw
cd /tmp/ofed
for part in sw/rxe core; do cp -r "/usr/src/linux-lab-$series/$infiniband/$part" $infiniband/$part; done
/in/core/adapt .
cp /in/core/server/* $infiniband/core/
cp /in/core/rxe/* $infiniband/sw/rxe/
cp /in/core/Kbuild .
cp /in/compat.h /in/core/include/lab_device.h include/
header G2 >include/rdma/peer_mem.h
make -C "$tree" -j "$(nproc)" M=/tmp/ofed modules

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
