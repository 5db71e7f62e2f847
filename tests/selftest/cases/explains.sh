# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What status says of the module, this GPU or this device stands below a failure, once.
export DOUBLE=no_module GPUS=2 HCAS="mlx5_0 mlx5_1"
hca mlx5_1 Ethernet
cat >"$scratch/facts" <<'END'
[{"section": "module", "name": "state", "verdict": "bad", "value": "not loaded", "advice": "/etc/init.d/nv_peer_mem start"},
 {"section": "module", "name": "on boot", "verdict": "warn", "value": "not loaded"},
 {"section": "detection", "name": "NCCL", "verdict": "bad", "value": "no"},
 {"section": "GPU 0000:1b:00.0", "name": "driver", "verdict": "bad", "value": "vfio-pci"},
 {"section": "RDMA devices", "name": "mlx5_1 IOMMU", "verdict": "bad", "value": "DMA"},
 {"section": "RDMA devices", "name": "mlx5_0", "verdict": "none", "value": "0000:3b:00.0"}]
END
looks 1 '        status: module: state: not loaded' '          -> /etc/init.d/nv_peer_mem start' '4 of 4 pairs FAILED' --
# The order of it: with the first pair that it is about.
below() { awk -v pair="$1" 'index($0, pair) { found = 1; next } /^ !!|^nvpm/ { found = 0 } found' "$scratch/said" | grep -c status: ; }
for expected in "GPU 0 0000:1a:00.0, mlx5_0/1:1" "GPU 0 0000:1a:00.0, mlx5_1/1:1" \
	"GPU 1 0000:1b:00.0, mlx5_0/1:1" "GPU 1 0000:1b:00.0, mlx5_1/1:0"; do
	if [ "$(below "${expected%:*}")" = "${expected##*:}" ]; then ok; else fail "not $expected lines of status"; fi
done
if [ "$(grep -c asked "$asked")" = 1 ]; then ok; else fail "status was not asked once"; fi
if ! grep -q 'NCCL\|on boot' "$scratch/said"; then ok; else fail "what does not explain it is said"; fi
# Where nothing is bad, what is not good.
echo '[{"section": "module", "name": "installed", "verdict": "warn", "value": "another"},
 {"section": "module", "name": "on boot", "verdict": "warn", "value": "not loaded"}]' >"$scratch/facts"
looks 1 'status: module: installed: another' --
if ! grep -q 'on boot' "$scratch/said"; then ok; else fail "what the next boot does explains nothing"; fi
echo 'no JSON' >"$scratch/facts"
looks 1 'status: status: status: does not answer' --
