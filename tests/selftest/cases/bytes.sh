# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Bytes that are wrong, or do not come.
while read -r word text; do
	export DOUBLE=$word
	looks 1 "^ !!   GPU 0 0000:1a:00.0, mlx5_0/1: $text$" '1 of 1 pair FAILED' --
done <<END
wrong_to_gpu host to GPU: wrong bytes in 1 of 16 pages of 4 KiB, the first at offset 12345
wrong_from_gpu GPU to host: wrong bytes in 1 of 16 pages of 4 KiB, the first at offset 12345
nothing_to_gpu host to GPU: nothing arrived, the first at offset 0
nothing_from_gpu GPU to host: nothing arrived, the first at offset 0
END
