# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm on the kernel's own mlx5_core: links, a slow card, firmware that refuses a request, and that dies
# Nics: 2
use_seed
load_all
pci=$(basename "$(readlink -f /sys/class/infiniband/mlx5_1/device)")

# status: stores the output of nvpm status in /tmp/words, as one line without the terminal's colours.
status() {
	nvpm status --all >/tmp/said 2>&1 || true
	cat /tmp/said
	sed 's/\x1b\[[0-9;]*m//g' /tmp/said | tr -s ' \n' ' ' >/tmp/words
}

# says FILE PATTERN...: checks that each pattern is in the file.
says() {
	local pattern file=$1
	for pattern in "${@:2}"; do check "nvpm says '$pattern'" grep -qE -- "$pattern" "$file"; done
}

# selftest EXIT_CODE TEXT WORD...: checks the exit code of nvpm selftest.
selftest() {
	local rc=0
	nvpm selftest --seed "$SEED" "${@:3}" >/tmp/said 2>&1 || rc=$?
	cat /tmp/said
	equal "$2: exit code of nvpm selftest" "$1" "$rc"
}

# explained PATTERN: checks the cause that nvpm explain finds in the kernel's log since mark_log.
explained() {
	log_after "$MARK" >/tmp/log
	nvpm explain /tmp/log >/tmp/said 2>&1 || true
	cat /tmp/log /tmp/said
	tr -s ' \n' ' ' </tmp/said >/tmp/words
	says /tmp/words "$1"
}

status
says /tmp/words 'ways GPU 0 with all RDMA devices: nv_peer_mem, dma-buf' "place $pci, a virtual function \[mlx5_1\]" \
	'dma-buf yes: it answers EBADF' 'ok port 1 ACTIVE, LinkUp, 200 Gb/sec \(4X HDR\), InfiniBand' \
	'firmware 20\.[0-9.]+, board LAB' '0000:[0-9a-f:.]+ PHB PHB mlx5_0, mlx5_1'
selftest 0 "two cards, each way"
says /tmp/said 'mlx5_1/1: to GPU 16 MiB' 'mlx5_1/1, dma-buf: to GPU 16 MiB' 'passed, 4 pairs'

# The emulated links are always slower than they say, so all rates are marked. The slow card must
# be the slowest.
ask nic 2 delay 100 >/dev/null
selftest 1 "a slow card" --bandwidth --seconds 1 --json
check "the slow card has less than half of the other card's rates" python3 -c '
import json
pairs = json.load(open("/tmp/said"))["pairs"]
for way in "pointer", "dma-buf":
    for rate in "to_gpu", "from_gpu":
        fast, slow = (pair[rate] for pair in sorted(pairs, key=lambda pair: pair["device"]) if pair["way"] == way)
        assert 0 < slow < fast / 2, (way, rate, slow, fast)'
ask nic 2 delay 0 >/dev/null

mark_log
nic fail_command CREATE_MKEY 1 >/dev/null
check "a registration is refused" eval '! nvpm selftest --device mlx5_0'
explained "Cause \(probable\): the NIC's firmware refuses the request"
selftest 0 "after a refused request" --device mlx5_0

mark_log
ask nic 2 die >/dev/null
recovery_failed() { dmesg | grep -q "$pci: .*health recovery failed"; }
wait_for "the end of the driver's attempts" recovery_failed
explained 'Cause \(certain\): the NIC or its firmware does not answer any more'
status
says /tmp/words "card $pci mlx5_core drives $pci, which is no RDMA device"
selftest 0 "the other card is not concerned"

echo "$pci" >/sys/bus/pci/drivers/mlx5_core/unbind
ask nic 2 come_back >/dev/null
echo "$pci" >/sys/bus/pci/drivers/mlx5_core/bind
wait_for "the link of mlx5_1" grep -q ACTIVE /sys/class/infiniband/mlx5_1/ports/1/state
selftest 0 "with new firmware" --device mlx5_1
