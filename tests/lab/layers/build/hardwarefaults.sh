# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Builds the module with a mistake each, which the tests for hardware must notice: hardwarefaults.sh
# KVER. The mistakes are in the C files, so the Rust need not be compiled again.
set -euo pipefail
kver=$1
mkdir /tmp/build
cp -a /in/Kbuild /in/Makefile /in/dkms.conf /in/build /in/src /tmp/build/
cp -a /in/ready /tmp/build/build/prebuilt
cd /tmp/build

# fault NAME FILE PATTERN REPLACEMENT: builds the module with one line changed, which must be there.
fault() {
	grep -qF -- "$3" "src/c/$2"
	cp "src/c/$2" /tmp/original
	awk -v old="$3" -v new="$4" '{ at = index($0, old); if (at) $0 = substr($0, 1, at - 1) new substr($0, at + length(old)); print }' \
		/tmp/original >"src/c/$2"
	if cmp -s "src/c/$2" /tmp/original; then exit 1; fi
	make -s KVER="$kver" NVPM_RUST=prebuilt
	install -D -m 644 -t "/opt/hardware-faults/$1" nv_peer_mem.ko nv_peer_mem_callback.ko
	cp /tmp/original "src/c/$2"
}

map='dma = dma_map_resource(dev, phys, len, DMA_BIDIRECTIONAL, 0);'
pin='return nvidia_p2p_get_pages_persistent(addr, len, table, 0);'
unpin='return nvidia_p2p_put_pages_persistent(addr, table, 0);'
fault small dma.c "$map" "if (len > 65536) return -ENOMEM; $map"
# The module compares its mapping of a page with the driver's, and takes the driver's if they differ.
fault elsewhere dma.c "$map" "if (len > 65536) phys += 65536; $map"
fault few dma.c "$map" "{ static atomic_t made; if (atomic_inc_return(&made) > 500) return -ENOMEM; } $map"
fault wrong-errno nvidia.c "$pin" '{ int rc = nvidia_p2p_get_pages_persistent(addr, len, table, 0); return rc == -EINVAL ? -EBUSY : rc; }'
fault never-unpinned nvidia.c "$unpin" 'return 0;'
fault never-revoked callbacks.c 'nvpm_revoke((uintptr_t)number);' ';'
fault loud nvidia.c "$unpin" "WARN_ON(1); $unpin"
