# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module beside NVIDIA's proprietary driver itself
#
# The driver has a GPU that no program opens. The user must receive the driver's error for memory
# that is not the GPU's. `status` must name the driver, and the module must unload.
tracing=/sys/kernel/debug/tracing

# answers: prints the driver's return values since the previous call of answers. Each call of the
# driver has its own line.
answers() {
	sed -n 's/.* \(persistent\|revocable\): .* said=/\1 /p' "$tracing/trace"
	echo >"$tracing/trace"
}

# probe EXPECTED WORD...: succeeds if a registration of the memory ends with EXPECTED.
probe() { LAB_GPU=/tmp/host gpuverbs probe --expect "$@"; }

modprobe idlegpu
load_rdma
truncate -s 1M /tmp/host
for support in 1 0; do
	check "$support: the module loads, and that driver with it" load_module "persistent_api_support=$support"
	equal "$support: it is the driver that was installed" "$(modinfo -F version nvidia-current)" "$(cat /sys/module/nvidia/version)"
	equal "$support: it has the GPU" nvidia "$(basename "$(readlink /sys/bus/pci/devices/0001:00:00.0/driver)")"
	{
		echo "r:persistent nvidia_p2p_get_pages_persistent said=\$retval:s32"
		echo "r:revocable nvidia_p2p_get_pages said=\$retval:s32"
	} >"$tracing/kprobe_events"
	echo 1 >"$tracing/events/kprobes/enable"

	check "$support: host memory is registered" probe ok --parts host:64K
	equal "$support: which the driver was not asked about" '' "$(answers)"
	check "$support: memory that is nobody's is not" probe EFAULT --address 0x10000000 --length 64K
	equal "$support: the driver says that it is not its own" "-22" "$(answers | cut -d' ' -f2 | sort -u)"
	check "$support: nor is what the host cannot pin" env LAB_GPU=/sys/bus/pci/devices/0001:00:00.0/resource1 \
		gpuverbs register --expect EFAULT --offset 0 --length 64K
	equal "$support: the driver says the same" "-22" "$(answers | cut -d' ' -f2 | sort -u)"
	equal "$support: no failure is counted" '' "$(grep -lvx 0 /sys/module/nv_peer_mem/statistics/failed_*)"

	/etc/init.d/nv_peer_mem status --all >/tmp/status || true
	check "$support: status names the driver" grep -qE "^  ok  nvidia +loaded, version $(cat /sys/module/nvidia/version)$" /tmp/status
	check "$support: and its flavour" grep -qE '^  ok  flavour +proprietary$' /tmp/status
	check "$support: and the GPU" grep -qx '      0001:00:00.0' /tmp/status

	check "$support: the module unloads" unload_module
	equal "$support: without another word to the driver" '' "$(answers)"
	echo 0 >"$tracing/events/kprobes/enable"
	echo >"$tracing/kprobe_events"
	check "$support: and so does the driver" rmmod nvidia
done
