# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm used names the way of each kind of registration, as root and as another user, and with each module
# Nics: 2
# Gpu: 512
. /lab/cuda.sh
. /lab/dmabuf.sh
ip link set lo up
load_gpu
load_rdma
load_module

# held NAME WORD...: starts holder.py in the background. $number is its process then.
declare -A started
held() {
	"${before[@]}" python3 -B /lab/cuda/holder.py "${@:2}" </dev/null >"/tmp/$1.held" 2>&1 &
	started[$1]=$!
	wait_for "the holder $1" grep -q '^process=' "/tmp/$1.held" || cat "/tmp/$1.held"
	number=$(sed -n 's/^process=//p' "/tmp/$1.held")
}
before=(env)

# end_all: ends all holders.
end_all() {
	pkill -KILL -f /lab/cuda/holder.py || true
	wait_for "the holders' ends" eval '! pgrep -f /lab/cuda/holder.py'
	started=()
}

# look CODE [COMMAND...]: runs nvpm used --json by COMMAND, and checks its exit code.
look() {
	local code=0
	"${@:2}" nvpm used --json >/tmp/used.json 2>/tmp/errors || code=$?
	cat /tmp/errors
	sed -n 's/.*"answer": \("[^"]*"\).*/\1/p' /tmp/used.json
	equal "exit code" "$1" "$code"
}

# says PATTERN [COMMAND...]: checks the first line of nvpm used.
says() {
	"${@:2}" nvpm used >/tmp/said 2>&1 || true
	cat /tmp/said
	head -n 1 /tmp/said >/tmp/first
	check "nvpm used says: $1" grep -qE -- "$1" /tmp/first
}

# verdict PROCESS: prints what nvpm used says of a process, and the bytes by way.
verdict() {
	python3 -c '
import json, sys
rows = [row for row in json.load(open("/tmp/used.json"))["processes"] if row["process"] == int(sys.argv[1])]
memory = [(one["way"], one["bytes"]) for row in rows for one in row["memory"]]
print("; ".join([*sorted({row["verdict"] for row in rows}), *(f"{way} {number}" for way, number in memory)]))' "$1"
}

no_gpu_memory() { ! verdict "$1" | grep -q 'GPU memory'; }

# of NAME PROCESS VERDICT [WAY MIB...]: checks what nvpm used says of a process: the verdict, and the
# bytes that are registered by each way.
of() {
	local name=$1 process=$2 expected=$3
	shift 3
	while [ $# -gt 1 ]; do
		expected+="; $1 $(($2 << 20))"
		shift 2
	done
	equal "$name" "$expected" "$(verdict "$process")"
}

says 'No RDMA|is not in use'
look 3
held host host 4
host=$number
held plain host 3 plain
plain=$number
held pointer pointer 5 traffic
pointer=$number
held open dmabuf 6
open=$number
held closed dmabuf 7 closed
closed=$number
held paged paged 8
paged=$number
export HCA=mlx5_1
held other pointer 9
other=$number
export HCA=mlx5_0
before=(unshare --pid --fork --mount-proc)
held namespace pointer 2
namespace=$(pgrep -f 'holder.py pointer 2$' | tail -n 1)
before=(env)
held nothing nothing 1
nothing=$number
held thread pointer 10 thread
thread=$number
held ended pointer 11 ended
ended=$number
held child pointer 12 child
child=$number

say "root, with nv_peer_mem"
says 'GPUDirect RDMA is in use by'
look 0
of "host memory of a process with a GPU" "$host" "host memory only" host 8
of "host memory of a process without a GPU" "$plain" "no GPU" host 6
of "a pointer" "$pointer" "GPU memory" nv_peer_mem 10
of "a dma-buf" "$open" "GPU memory" dma-buf 12
of "a dma-buf whose descriptor is closed" "$closed" "GPU memory" dma-buf 14
of "host memory on demand" "$paged" "host memory only" "host, paged on demand" 16
of "the other device" "$other" "GPU memory" nv_peer_mem 18
of "a process in a namespace" "$namespace" "GPU memory" nv_peer_mem 4
of "a device without memory" "$nothing" "nothing registered"
of "a thread" "$thread" "GPU memory" nv_peer_mem 20
of "a thread that has ended" "$ended" "GPU memory" nv_peer_mem 22
check "a child that keeps its parent's registrations is named" grep -q "\"process\": $child\b" /tmp/used.json

say "another user: nothing is called wrong, and what cannot be told is said"
look 0 as_nobody
of "a dma-buf" "$open" "GPU memory" dma-buf 12
for process in "$host" "$plain" "$paged"; do
	check "host memory of $process is not called GPU memory" no_gpu_memory "$process"
done
end_all

say "with nvidia-peermem"
unload_module
modprobe nvidia-peermem
held pointer pointer 5
pointer=$number
held host host 4
host=$number
look 0
of "a pointer" "$pointer" "GPU memory" nvidia_peermem 10
of "host memory" "$host" "host memory only" host 8
end_all
rmmod nvidia-peermem

say "host memory only"
load_module
held host host 4 traffic
says 'not in use'
look 1
end_all

say "the devices are in another namespace of the network"
held pointer pointer 5
rdma system set netns exclusive
says 'another network namespace' unshare --net
rdma system set netns shared
end_all
