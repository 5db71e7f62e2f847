# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios do with other generations and flavours of the simulated driver than
# the installed one, and with threads that free memory in the middle of a call.

# Preloaded, it gives a program a thread that frees GPU memory where told.
INJECTOR=/usr/local/lib/lab-injector.so

# insert_driver DIRECTORY: loads the driver in the directory.
insert_driver() {
	[ ! -e "$1/nvidia_core.ko" ] || insmod "$1/nvidia_core.ko"
	insmod "$1/nvidia.ko"
	wait_for "the GPU" test -c /dev/nvidia-lab
}

# coherent 0|1|2: whether new GPU memory lies behind a coherent link; 2: not online. To the core that looks
# like anybody's.
coherent() {
	echo "$1" >"$NVIDIA/coherent"
	echo "any_memory $(($1 > 0))" >"$CORE/switch"
}

# load_driver GENERATION
load_driver() { insert_driver "/lib/nv_peer_mem/driver-$1"; }

# load_flavour open|closed
load_flavour() {
	if [ "$1" = "$(flavour)" ]; then load_gpu; else insert_driver "/lib/nv_peer_mem/$1"; fi
}

# How a registration may end that loses its memory at such a point: refused, because
# the memory is not there any more; or made, and then revoked or ended. Where
# both are possible it depends on who comes first.
declare -A endings=(
	[in_get_gap]='EFAULT'
	[before_get_returns]='EFAULT ok'
	[after_get]='EFAULT ok'
	[in_dma_map]='EFAULT'
	[after_dma_map]='EFAULT ok'
	[in_dma_unmap]='ok'
	[after_dma_unmap]='ok'
	[before_put]='ok'
	[after_put]='ok'
)

# register_losing TEXT POINT ENDINGS: checks that a registration whose memory is freed once, at
# the injection point POINT, ends in one of ENDINGS.
register_losing() {
	local text="$1, freed at $2" result
	remember
	echo "$2" >"$NVIDIA/inject"
	# Its own look at the pins may fail, when they are gone: only the result counts.
	result=$(LD_PRELOAD=$INJECTOR gpuverbs register --offset 0 --length 1M 2>/dev/null | sed -n 's/^result=//p') || true
	wait_for "the end of injected frees" injections_over
	check "$text: ended with ${result:-nothing}" grep -qwF -- "${result:-nothing}" <<<"$3"
	equal "$text: injected once" 1 "$(grown "injected_$2")"
	wait_for "everything to be given back" driver_at_rest
}

injections_over() { [ "$(nvidia_count live_injections)" = 0 ]; }
