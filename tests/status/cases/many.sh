# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Eight GPUs and twelve RDMA devices: a row for each GPU, each advice once.
equal_lines() { if [ "$1" = "$2" ]; then ok; else fail "$3: $1, not $2"; fi; }
many_devices
look 0
only_these ''
says distance "0000:13:00.0 mlx5_2" none PIX
says distance "0000:13:00.0 mlx5_3" none NODE
says distance "0000:13:00.0 mlx5_9" none SYS
says distance "0000:13:00.0 nearest" good mlx5_2
equal_lines "$(grep -c '^distance|.*|none|' "$scratch/facts")" 96 "pairs"
equal_lines "$(grep -cE '^  ok  0000:[1-8]3:00.0 .* (PIX|NODE|SYS) ' "$scratch/text")" 8 "rows of the matrix"
if [ "$(wc -l <"$scratch/text")" -lt 110 ]; then ok; else fail "$(wc -l <"$scratch/text") lines"; fi
for bus in b1 44 84; do iommu "0000:$bus:00.0" DMA; done
look 0
only_these IOMMU,IOMMU,IOMMU
equal_lines "$(grep -c 'iommu=pt' "$scratch/text")" 1 "lines with one advice"
equal_lines "$(grep -A 1 'addresses are translated' "$scratch/text" | tail -n 1)" "        of mlx5_1, mlx5_5, mlx5_9" "whom it is for"
