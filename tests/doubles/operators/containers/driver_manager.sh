# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The GPU Operator's k8s-driver-manager, as version 0.12 behaves: the init container of the driver's
# pod. A restart of only the driver's container does not run it.

# client_label VALUE: sets the node's label nvidia.com/gpu.deploy.client to VALUE. The DaemonSet
# controller then starts or ends a pod that names the label. A scenario with such a pod replaces
# this function.
client_label() { :; }

# manager_unload DRIVER: makes the node ready for the start of DRIVER's container. If DRIVER is the
# driver of the last start, the modules stay.
manager_unload() {
	local module failed=''
	[ -f /sys/module/nvidia/refcnt ] || {
		manager_forget
		return 0
	}
	client_label paused-for-driver-upgrade
	if [ "$(cat /run/nvidia/nvidia-driver.state 2>/dev/null)" = "$1" ]; then
		manager_forget
		client_label true
		return 0
	fi
	for module in nvidia_modeset nvidia_uvm nvidia_peermem nvidia_fs nvidia_vgpu_vfio gdrdrv nvidia; do
		[ -f "/sys/module/$module/refcnt" ] || continue
		rmmod "$module" || failed+=" $module"
	done
	if [ "$failed" ]; then
		echo "Could not unload NVIDIA driver kernel modules, driver is in use:$failed"
		# The manager puts the label back although the driver is half unloaded.
		client_label true
		return 1
	fi
	manager_forget
	client_label true
}

# manager_forget: removes what an earlier container has left.
manager_forget() {
	driver_hide
	rm -f /run/nvidia/nvidia-driver.pid
}
