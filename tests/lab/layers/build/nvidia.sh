# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the simulated NVIDIA driver, open or closed, and installs it where DKMS puts the real
# driver; the other kind goes to /lib/nv_peer_mem/KIND. Like the real driver, it leaves no
# Module.symvers; the lab's own modules find its symbols in /lib/nv_peer_mem.
set -euo pipefail
kver=$1 installed=$2 compiler=$3
tree=/lib/modules/$kver/build
# A kernel compiled by clang wants its modules compiled by clang.
! grep -q '^CONFIG_CC_IS_CLANG=y' "$tree/.config" || export LLVM=1
src=$(echo /usr/src/nvidia-*)

# driver KIND [SETTING]: builds the driver of this kind, and puts it in its place.
driver() {
	local to=/lib/nv_peer_mem/$1
	[ "$1" != "$installed" ] || to=/lib/modules/$kver/updates/dkms
	mkdir -p "/tmp/$1"
	cp -a /in/driver /in/compat.h "/tmp/$1/"
	make -C "$tree" M="/tmp/$1/driver" NV_SRC="$src/nvidia" NV_VERSION="${src##*-}" "${@:2}" modules
	install -D -m 644 -t "$to" "/tmp/$1"/driver/*.ko
	grep -P '\tnvidia_p2p_' "/tmp/$1/driver/Module.symvers" | sort -k 2 |
		sed 's,\t/[^\t]*nvidia\t,\tnvidia\t,' >"/tmp/$1.symvers"
}
driver open
driver closed NV_CLOSED=1
# A module that was compiled for one flavour can be loaded with the other, so both flavours must
# have the same symbols.
join -j 2 /tmp/open.symvers /tmp/closed.symvers | awk '{ n++ } $2 != $5 { print; bad = 1 } END { exit bad || n < 8 }'
install -m 644 "/tmp/$installed.symvers" /lib/nv_peer_mem/nvidia.symvers
depmod "$kver"

# injector.c gives any program threads that free memory.
"$compiler" -std=gnu17 -O2 -Wall -Wextra -Werror -shared -fPIC -pthread \
	-o /usr/local/lib/lab-injector.so /in/driver/injector.c
