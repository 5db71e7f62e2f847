# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: nvpm used names the way of each kind of registration, as root and as another user, and with each module
# Nics: 2
# Gpu: 512
. /lab/cuda.sh
. /lab/dmabuf.sh
. /lab/holders.sh
ip link set lo up
load_gpu
load_rdma
load_module

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
