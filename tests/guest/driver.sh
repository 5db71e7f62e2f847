# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What scenarios do with other generations of the simulated driver than the
# installed one, and with threads that free memory in the middle of a call.

# Preloaded, it gives a program a thread that frees GPU memory where told.
INJECTOR=/usr/local/lib/lab-injector.so

# load_driver GENERATION
load_driver() {
	insmod "/lib/nv_peer_mem/driver-$1/nvidia.ko"
	wait_for "the GPU" test -c /dev/nvidia-lab
}

# load_module_for GENERATION [PARAMETER=VALUE...]: the module built for it.
load_module_for() {
	local generation=$1
	shift
	insmod "/lib/nv_peer_mem/driver-$generation/nv_peer_mem.ko" "$@"
}

# register_losing POINT OPTION...: a registration whose memory goes at the injection point POINT. How it
# ended is in $result.
register_losing() {
	echo "$1" >"$NVIDIA/inject"
	shift
	# Its own look at the pins may fail, when they are gone: only the result counts.
	result=$(LD_PRELOAD=$INJECTOR gpuverbs register --offset 0 --length 1M "$@" 2>/dev/null | sed -n 's/^result=//p') || true
	wait_for "the end of injected frees" injections_over
}

injections_over() { [ "$(nvidia_count live_injections)" = 0 ]; }

# remember: the counters as they are. grown NAME: by how much one is higher now.
remember() { cat "$NVIDIA/counters" >/tmp/before; }
grown() { echo $(($(nvidia_count "$1") - $(sed -n "s/^$1 //p" /tmp/before))); }
