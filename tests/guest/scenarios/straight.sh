# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: one RDMA write between two pieces of GPU memory, seen from outside
load_all
equal "version in sysfs" "$(modinfo -F version nv_peer_mem)" "$(cat /sys/module/nv_peer_mem/version)"
coproc CLIENT { gpuverbs transfer --from 0 --to 1M --length 300001 --seed 7 --hold; }
while read -r -u "${CLIENT[0]}" line; do
	printf '%s\n' "$line"
	[ "$line" != holding ] || break
done
equal "the bytes in the BAR, seen by the host" yes "$(ask pattern $((1024 * 1024)) 300001 7)"
echo >&"${CLIENT[1]}"
wait "$CLIENT_PID"
unload_module
