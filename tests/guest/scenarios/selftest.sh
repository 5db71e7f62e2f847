# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm selftest uses real verbs, passes with both kinds of pins, and says what is wrong if something is

# tested EXIT_CODE TEXT [WORD...] [-- PATTERN...]: checks the exit code and the output of nvpm
# selftest. The array `as` holds a command that runs nvpm as another user.
as=()
tested() {
	local expected=$1 what=$2 words=() rc=0 pattern
	shift 2
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		words+=("$1")
		shift
	done
	"${as[@]}" nvpm selftest --seed "$SEED" --size 300001 "${words[@]}" >/tmp/said 2>&1 || rc=$?
	cat /tmp/said
	equal "$what: exit code" "$expected" "$rc"
	for pattern in "${@:2}"; do check "$what: it says '$pattern'" grep -qE -- "$pattern" /tmp/said; done
}

use_seed
tested 3 "nothing is there" -- 'nothing was tested: no GPU' 'nothing was tested: no RDMA device$' '-> .*nvidia-smi'
load_neighbours
tested 1 "without the module" -- \
	'^ !!   GPU 0 0000:.*, rxe0/1: ibv_reg_mr: EFAULT \(Bad address\) of GPU memory$' \
	'status: module: state: not loaded' '-> .*nv_peer_mem start' '1 of 1 pair FAILED'

load_module
tested 0 "pinned" -- \
	'^  ok  GPU 0 0000:.*, rxe0/1: to GPU 300001 bytes, [0-9.]+ [MG]B/s; from GPU 300001 bytes, .*; freed: pinned until deregistered'
equal "pinned: registrations" 1 "$(statistic registrations)"
equal "pinned: nothing stays registered" 0 "$(statistic reachable_regions)"
tested 0 "the usual size" --size 16M
tested 0 "sustained transfers" --bandwidth --seconds 0 -- 'by pointer, GB/s to the GPU / from the GPU' \
	'^rxe0 +[0-9.]+/[0-9.]+ +unknown$' 'All devices are made of software'

# A plain user may lock less memory than the test needs, so the test must say so.
as=(setpriv --reuid 65534 --clear-groups prlimit --memlock=65536)
tested 1 "little locked memory" --size 16M -- \
	'ibv_reg_mr: ENOMEM .* of host memory: this user may lock 64 KiB \(ulimit -l\)'
as=()
with fail 'get_pages_persistent ENOMEM 1' tested 1 "the driver fails" -- 'ibv_reg_mr: E[A-Z]+ .* of GPU memory$'
unload_module

load_module persistent_api_support=0
tested 0 "revocable" -- '^  ok .*; freed: the device was refused \(revocable\)$'
equal "revocable: revocations" 1 "$(statistic revocations)"
equal "revocable: nothing stays registered" 0 "$(statistic reachable_regions)"
