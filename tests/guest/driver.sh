# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Functions for scenarios that load another generation or flavour of the simulated driver. Other
# functions free memory on another thread in the middle of a call.

# A preloaded library that adds a thread to a program. The thread frees GPU memory at the injection
# point.
INJECTOR=/usr/local/lib/lab-injector.so

# insert_driver DIRECTORY: loads the driver in the directory.
insert_driver() {
	[ ! -e "$1/nvidia_core.ko" ] || insmod "$1/nvidia_core.ko"
	insmod "$1/nvidia.ko"
	wait_for "the GPU" test -c /dev/nvidia-lab
}

# coherent 0|1|2: chooses where new GPU memory is. With 0 it is in the BAR, with 1 behind a coherent
# link, and with 2 behind a coherent link with pages that are not online. The core's check takes
# memory behind a coherent link for ordinary memory, so this function lets the check accept ordinary
# memory.
coherent() {
	echo "$1" >"$NVIDIA/coherent"
	echo "any_memory $(($1 > 0))" >"$CORE/switch"
}

# load_driver GENERATION: loads the driver of this generation.
load_driver() { insert_driver "/lib/nv_peer_mem/driver-$1"; }

# load_flavour open|closed: loads the driver of this flavour.
load_flavour() {
	if [ "$1" = "$(flavour)" ]; then load_gpu; else insert_driver "/lib/nv_peer_mem/$1"; fi
}

# The possible results of a registration whose memory is freed at an injection point. EFAULT means
# that the registration fails because the memory is freed. The result ok means that the registration
# succeeds, and is then revoked or ended. If both results are possible, the order of the threads
# decides.
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

# register_losing TEXT POINT ENDINGS: frees the memory of a registration at the injection point
# POINT, and checks that the registration ends in one of ENDINGS.
register_losing() {
	local text="$1, freed at $2" result
	remember
	echo "$2" >"$NVIDIA/inject"
	# Only the printed result counts. The exit code does not count, because gpuverbs also checks
	# the pins, and fails if the pins have ended.
	result=$(LD_PRELOAD=$INJECTOR gpuverbs register --offset 0 --length 1M 2>/dev/null | sed -n 's/^result=//p') || true
	wait_for "the end of injected frees" injections_over
	check "$text: ended with ${result:-nothing}" grep -qwF -- "${result:-nothing}" <<<"$3"
	equal "$text: injected once" 1 "$(grown "injected_$2")"
	wait_for "everything to be given back" driver_at_rest
}

injections_over() { [ "$(nvidia_count live_injections)" = 0 ]; }
