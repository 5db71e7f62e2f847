# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What monitors read: JSON, metrics, and a line with an exit code.
put /name node7
put /sys/module/nv_peer_mem/statistics/left_behind 0
look 0
measure
checked 0 "OK - loaded, version 2.0.0 | regions=0 bytes=0B registrations=0c revocations=0c failed_no_memory=0c failed_not_supported=0c failed_freed=0c failed_driver=0c left_behind=0"
sampled "nvpm_info{kernel=$KERNEL} 1"
sampled "nvpm_loaded 1"
sampled "nvpm_attention{verdict=bad} 0"
sampled "nvpm_fact{id=module/state} 0"
sampled "nvpm_left_behind 0"
python3 - "$scratch/json" "$KERNEL" <<-'EOF' || fail "JSON for machines"
	import json, sys
	said = json.load(open(sys.argv[1]))
	# What was there before there was a schema.
	assert (said["state"], said["exit_code"], said["to_do"]) == ("running", 0, 0), said
	assert set(said["facts"][0]) == {"id", "section", "name", "verdict", "value"}, said["facts"][0]
	assert (said["host"], said["kernel"]) == ("node7", sys.argv[2]), said
	# Monitors know facts by these.
	ids = {fact["id"] for fact in said["facts"]}
	known = """module/state module/on_boot module/persistent_api_support use/regions use/failed_no_memory
	    rdma_core/peer_memory rdma_core/client_nv_mem need/dma-buf need/nv_peer_mem driver/nvidia driver/flavour
	    driver/nvidia_peermem detection/nccl_newer detection/nccl_up_to_2.22 detection/gpu-operator
	    security/secure_boot security/module_signed_by""".split()
	assert ids.issuperset(known), set(known) - ids
EOF
ok

# Figures of 64 bits; warnings, and what is worse; and what is not to be judged.
put /sys/module/nv_peer_mem/statistics/bytes 18446744073709551615
put /sys/module/nv_peer_mem/statistics/failed_no_memory 3
put /sys/module/nv_peer_mem/statistics/failed_driver 1
look 0
measure
sampled "nvpm_registered_bytes 18446744073709551615"
sampled "nvpm_failed_registrations_total{cause=no_memory} 3"
sampled "nvpm_fact{id=use/failed_no_memory} 1"
sampled "nvpm_attention{verdict=warn} 2"
checked 1 "WARNING - use/failed_no_memory: 3; use/failed_driver: 1 | regions=0 bytes=18446744073709551615B"
checked 0 "OK - loaded" --ignore "use/failed_*"
checked 1 "WARNING - use/failed_driver: 1 |" -i use/failed_no_memory
checked 0 "OK - loaded" --ignore=detection/*,use/failed_no_memory,use/failed_driver
checked 1 "WARNING - use/failed_no_memory: 3; use/failed_driver: 1; --ignore use/failed matches nothing |" --ignore use/failed
checked 0 "OK - loaded, version 2.0.0; --ignore rdma_devices/* matches nothing; --ignore use/failed_frozen matches nothing |" \
	--ignore 'rdma_devices/*' --ignore=use/failed_*,use/failed_frozen,use/bytes
put /sys/module/nvidia/taint POE
look 0
measure
sampled "nvpm_fact{id=driver/flavour} 2"
checked 2 "CRITICAL - driver/flavour: proprietary"

# A bar in a value does not begin the performance data.
new_machine
module nv_peer_mem version='2|1' signer=somebody
checked 1 "WARNING - module/state: loaded, version 2.0.0; version 2/1 is installed |"

# The module is not loaded; nobody can tell; wrong arguments.
gone /sys/module/nv_peer_mem
look 3
measure
sampled "nvpm_loaded 0"
checked 2 "CRITICAL - module/state: not loaded"
gone /sys/module
look 4
measure
checked 3 "UNKNOWN - unknown: Mount sysfs"
for wrong in --help --ignore --wrong; do
	code=0
	dash "$top/init.d/check" "$wrong" >"$scratch/usage" || code=$?
	if [ "$code" = 3 ] && grep -q '^Usage: nvpm check' "$scratch/usage"; then ok; else fail "check $wrong: $code"; fi
done

# Not root: what cannot be read is said once, and is no warning.
new_machine
put /uid 1000
put /sys/module/nv_peer_mem/statistics/regions 2
for bridge in 0000:01:00.0 0000:02:00.0 0000:02:01.0; do
	head -c 64 /dev/zero >"$root/sys/bus/pci/devices/$bridge/config"
done
nic mlx5_1 pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:05:00.0 0
look 0
only_these ''
says report "not read" none "which processes have an RDMA device open, ACS of the bridges" "Only root"
if [ "$(grep -c 'root' "$scratch/facts")" = 1 ]; then ok; else fail "said more than once: $(grep root "$scratch/facts")"; fi
checked 0 "OK - loaded"
