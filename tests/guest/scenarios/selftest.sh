# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm selftest over real verbs: passes either way of pinning, and says what is wrong where something is
. /lab/cuda.sh
selftest=/usr/lib/nvidia-peer-memory/selftest

# tested EXIT_CODE WHAT WORD...: what it says is in /tmp/said. It runs as ${as[@]} says.
as=()
tested() {
	local expected=$1 what=$2 rc=0
	shift 2
	"${as[@]}" "$selftest" --seed "$SEED" --size 300001 "$@" >/tmp/said 2>&1 || rc=$?
	cat /tmp/said
	equal "$what: exit code" "$expected" "$rc"
}

# says WHAT PATTERN...
says() {
	local what=$1 pattern
	shift
	for pattern; do check "$what: it says '$pattern'" grep -qE -- "$pattern" /tmp/said; done
}

# object WHAT EXPRESSION: of the object that it has printed for machines.
object() {
	check "$1: $2" python3 -c "import json, sys; said = json.load(open('/tmp/said')); sys.exit(not ($2))"
}

# kept FILE: a figure of the module.
kept() { cat "/sys/module/nv_peer_mem/statistics/$1"; }

use_seed
tested 3 "nothing is there"
says "nothing is there" 'nothing was tested: no GPU' 'nothing was tested: no RDMA device$' '-> .*nvidia-smi'
load_gpu
load_rdma

tested 1 "without the module"
says "without the module" '^ !!   GPU 0 0000:.*, rxe0/1: ibv_reg_mr: EFAULT \(Bad address\) of GPU memory$' \
	'status: module: state: not loaded' '-> .*nv_peer_mem start' '1 of 1 pair FAILED'

load_module
tested 0 "pinned"
says "pinned" '^  ok  GPU 0 0000:.*, rxe0/1: to GPU 300001 bytes, [0-9.]+ [MG]B/s; from GPU 300001 bytes, .*; freed: pinned until deregistered'
equal "pinned: registrations" 1 "$(kept registrations)"
equal "pinned: nothing stays registered" 0 "$(kept regions)"
tested 0 "the usual size" --size 16M
tested 0 "for machines" --json --gpu 0 --device rxe0
object "for machines" "said['passed'] == 1 and said['seed'] == $SEED and said['pairs'][0]['freed'] == 'pinned'"
tested 3 "another GPU" --gpu 1
tested 2 "wrong option" --size none

# What a user who is not root may lock is less than is asked for.
as=(setpriv --reuid 65534 --clear-groups prlimit --memlock=65536)
tested 1 "little locked memory" --size 16M
says "little locked memory" 'ibv_reg_mr: ENOMEM .* of host memory: this user may lock 64 KiB \(ulimit -l\)'
as=()

# A link that is down.
net=$(cat /sys/class/infiniband/rxe0/parent)
ip link set "$net" down
wait_for "the link to go down" sh -c 'rdma link show | grep -q "state DOWN"'
tested 3 "no link"
says "no link" 'rxe0: not tested: no active port \(port 1 is DOWN\)' 'no RDMA device with an active port'
ip link set "$net" up
wait_for "the RDMA link" sh -c 'rdma link show | grep -q "state ACTIVE"'

# The driver fails a registration.
echo "get_pages_persistent ENOMEM 1" >"$NVIDIA/fail"
tested 1 "the driver fails"
says "the driver fails" 'ibv_reg_mr: E[A-Z]+ .* of GPU memory$'
unload_module

load_module persistent_api_support=0
tested 0 "revocable"
says "revocable" '^  ok .*; freed: the device was refused \(revocable\)$'
equal "revocable: revocations" 1 "$(kept revocations)"
equal "revocable: nothing stays registered" 0 "$(kept regions)"
