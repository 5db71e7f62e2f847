# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Judges each GPU and each RDMA device by itself. Reads the records of
# topology.awk.

function mib(size) {
	return size >= 1024 ? size / 1024 " GiB" : size " MiB"
}

# node_fact(SECTION, PCI): where a machine has several nodes, programs choose
# processors and devices by it.
function node_fact(section, pci) {
	if (node[pci] >= 0)
		fact(section, "NUMA node", "none", node[pci])
	else if (nodes ~ /[,-]/ && virtual == "")
		fact(section, "NUMA node", "warn", "unknown: the firmware does not say", \
			"Programs cannot choose the near processors: look for newer firmware (BIOS), or bind them by hand.")
}

# read_request(PCI): sets `request`, the largest read that the device may ask for,
# and `relaxed`; fails if that cannot be read.
function read_request(pci,   at, tries, head, control) {
	if (size[pci] <= 16) return 0
	# The list of capabilities; PCI Express is number 16.
	for (at = config[pci, 13] % 256; at >= 64 && tries++ < 48; at = int(head / 256) % 256) {
		head = config[pci, at / 4]
		if (head % 256 != 16) continue
		control = config[pci, at / 4 + 2]
		request = 128 * 2 ^ (int(control / 4096) % 8)
		relaxed = bit(control, 4)
		return 1
	}
	return 0
}

# settings_facts: of the RDMA device, because it reads and the GPU answers.
function settings_facts(section, pci) {
	if (size[pci] > 0 && size[pci] <= 16) {
		fact(section, "MaxReadReq", "unread", "PCI settings of RDMA devices")
		return
	}
	if (!read_request(pci)) return
	if (request < 512 && virtual == "")
		fact(section, "MaxReadReq", "warn", request, "Reads are cut small. Until the next reboot: setpci -s " pci " CAP_EXP+8.w=5000:7000 allows 4096 bytes; for good, see the firmware's settings.")
	else
		fact(section, "MaxReadReq", "none", request)
	fact(section, "relaxed ordering", "none", relaxed ? "on" : "off: writes wait for each other; the firmware, or the kernel for some processors, turns it off")
}

function nic_fact(i,   section, pci, value) {
	section = "RDMA device " nic[i]
	pci = nic_pci[i]
	if (pci == "") {
		fact(section, "place", "bad", "not a PCI device: it cannot reach GPU memory", "Use an RDMA device on PCI.")
		return
	}
	fact(section, "place", "none", pci (software[i] == "" ? "" : ", software over " software[i]))
	node_fact(section, pci)
	value = iommu[pci]
	if (value == "none")
		fact(section, "IOMMU", "good", "none")
	else if (value == "identity")
		fact(section, "IOMMU", "good", "identity: addresses are not translated")
	else
		fact(section, "IOMMU", "warn", value ": addresses are translated, " (through_cpu ? "which takes time" : "so data is routed through the CPU"), \
			"Put " untranslated " on the kernel's command line and reboot.")
	if (software[i] == "") settings_facts(section, pci)
}

# NVIDIA numbers its products by generation: Turing begins at 0x1e00, Blackwell at
# 0x2900. The open driver serves none before Turing, the proprietary one none from
# Blackwell on.
function driver_fact(i, section) {
	if (driver[i] == "nvidia")
		fact(section, "driver", "good", "nvidia")
	else if (driver[i] ~ /^vfio/)
		fact(section, "driver", served ? "none" : "warn", driver[i] ": it is given to a virtual machine", \
			"nv_peer_mem belongs into that machine. To have the GPU here, take it from " driver[i] " (driverctl unset-override " gpu[i] ", or vfio-pci.ids= on the kernel's command line) and reboot.")
	else if (driver[i] != "")
		fact(section, "driver", "bad", driver[i] ": the NVIDIA driver does not have this GPU", \
			"echo 'blacklist " driver[i] "' >/etc/modprobe.d/nvidia-blacklist-" driver[i] ".conf, make the initramfs anew (update-initramfs -u, or dracut -f), and reboot.")
	else if (flavour == "open" && product[i] > 0 && product[i] < 7680)
		fact(section, "driver", "bad", "none: Volta and older are not served by the open driver", \
			"Install the proprietary kernel modules, of version 580 or older: later ones do not know this GPU.")
	else if (flavour == "proprietary" && (coherent[i] != "" || product[i] >= 10496))
		fact(section, "driver", "bad", "none: " (product[i] >= 10496 ? "Blackwell and newer are" : "Grace Hopper is") " served by the open driver only", "Install NVIDIA's open kernel modules.")
	else
		fact(section, "driver", "bad", "none", "modprobe nvidia; if it does not take the GPU, the kernel's log says why.")
}

# bar1_fact: no file says how much memory a GPU has, but the largest BAR that it
# can have holds all of it.
function bar1_fact(i, section) {
	if (bar1[i] == "") return
	if (largest[i] > bar1[i] + 0)
		fact(section, "BAR1", "warn", mib(bar1[i]) " of " mib(largest[i]) " that it can have: no more can be registered at once", \
			"Turn on above 4G decoding and resizable BAR in the firmware.")
	else if (largest[i] > 0 || bar1[i] > 256)
		fact(section, "BAR1", "good", mib(bar1[i]))
	else
		fact(section, "BAR1", "none", mib(bar1[i]) ", not resizable here: no more can be registered at once")
}

# memory_fact: of such a GPU nothing lies in BAR1. What can be revoked is mapped by us,
# what is RAM by the driver alone, pinned.
function memory_fact(i, section) {
	if (persistent == "0")
		fact(section, "memory", "bad", "coherent: the driver maps it, and nothing that can be revoked (persistent_api_support=0)", \
			"Load the module with persistent_api_support=1, its default: grep -r persistent_api_support /etc/modprobe.d finds who changed it.")
	else
		fact(section, "memory", "good", "coherent: the driver maps it, behind NVLink-C2C")
}

function gpu_fact(i,   section) {
	section = "GPU " gpu[i]
	driver_fact(i, section)
	node_fact(section, gpu_pci[i])
	if (coherent[i] != "") memory_fact(i, section); else bar1_fact(i, section)
	if (instances[i] != "") fact(section, "MIG", "none", "GPU instances: " instances[i])
}

END {
	# Data of these goes through it anyway.
	through_cpu = gpus
	for (i = 1; i <= gpus; i++) {
		if (driver[i] == "nvidia") served = 1
		if (coherent[i] == "") through_cpu = 0
	}
	if (!gpus)
		fact("GPUs", "number", "bad", 0, "lspci -d 10de: lists NVIDIA's devices; if there are none, check slot, power and firmware.")
	for (i = 1; i <= gpus; i++) gpu_fact(i)
	if (!nics)
		fact("RDMA devices", "number", "bad", 0, "Load the driver of the RDMA device (/etc/init.d/openibd start); ibv_devices lists what is there.")
	for (i = 1; i <= nics; i++) nic_fact(i)
}
