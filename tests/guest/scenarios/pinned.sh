# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: by default GPU memory stays pinned until deregistration
# All: behind an IOMMU straight and layouts show the same
# Test: plain 6.1
# Needs: plain iommu
load_all
for by in ioctl munmap; do
	check "freed by $by" gpuverbs revoke --from 0 --to 8M --length 300001 --by "$by" --expect pinned
done
equal "callbacks of the driver" 0 "$(nvidia_count callbacks_fired)"
