# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Judges how GPUs and RDMA devices are connected. Reads, separated by |:
#   gpu  NAME|PCI|DRIVER
#   nic  NAME|PCI|NETWORK_CARD      (the last only for software RDMA)
#   path PCI|BRIDGES/.../PCI|NUMA_NODE|IOMMU
#   acs  PCI|CONTROL, none or unreadable
# The distances have the names that nvidia-smi topo -m gives them.

function fact(section, name, verdict, value, advice) {
	printf "%s\t%s\t%s\t%s\t%s\n", section, name, verdict, value, advice
}

$1 == "gpu" { gpu[++gpus] = $2; gpu_pci[gpus] = $3; driver[gpus] = $4 }
$1 == "nic" { nic[++nics] = $2; nic_pci[nics] = $3; software[nics] = $4 }
$1 == "path" { path[$2] = $3; node[$2] = $4; iommu[$2] = $5 }
$1 == "acs" { acs[$2] = $3 }

# relation(A, B): sets `distance`, 0 to 4, and `said`.
function relation(a, b,   as, bs, na, nb, common, longest) {
	na = split(path[a], as, "/")
	nb = split(path[b], bs, "/")
	bridges = ""
	if (as[1] != bs[1]) {
		if (node[a] >= 0 && node[a] == node[b]) {
			distance = 3
			said = "same NUMA node, different root complexes (NODE)"
		} else if (node[a] >= 0 && node[b] >= 0) {
			distance = 4
			said = "across sockets, NUMA nodes " node[a] " and " node[b] " (SYS)"
		} else {
			distance = 4
			said = "different root complexes; the firmware does not say which sockets"
		}
		return
	}
	for (common = 1; common < na && common < nb && as[common + 1] == bs[common + 1]; common++)
		;
	if (common == 1) {
		distance = 2
		said = "same root complex, through the CPU (PHB)"
		return
	}
	# What a packet passes below the last bridge that both have above them.
	for (i = common + 1; i < na; i++) bridges = bridges " " as[i]
	for (i = common + 1; i < nb; i++) bridges = bridges " " bs[i]
	longest = (na > nb ? na : nb) - common
	if (common == 2) {
		distance = 1
		said = "same root port"
	} else {
		distance = 0
		said = longest > 2 ? "same tree of switches (PXB)" : "same switch (PIX)"
	}
}

# bit(NUMBER, WHICH)
function bit(number, which) { return int(number / 2 ^ which) % 2 }

# redirected(): bridges of the last relation that send packets between their
# ports up to the root complex; `unreadable` is set if that cannot be told.
function redirected(   list, n, found) {
	n = split(bridges, list, " ")
	found = ""
	unreadable = 0
	for (i = 1; i <= n; i++) {
		if (acs[list[i]] == "unreadable")
			unreadable = 1
		else if (acs[list[i]] != "none" && (bit(acs[list[i]], 2) || bit(acs[list[i]], 3)))
			found = found " " list[i]
	}
	return substr(found, 2)
}

function acs_fact(section, name,   where) {
	where = redirected()
	if (where != "") {
		first = where
		sub(/ .*/, "", first)
		fact(section, name " ACS", "warn", "redirect is on at " where ": data is routed through the CPU", \
			"For each of them, until the next reboot: setpci -s " first " ECAP_ACS+6.w=0:c. For good: ACS off in the firmware, or pci=disable_acs_redir=" first " on the kernel's command line. Not on a machine that gives these devices to virtual machines: ACS keeps them apart.")
	} else if (unreadable)
		fact(section, name " ACS", "unread", "ACS of the bridges")
	else
		fact(section, name " ACS", "good", "redirect is off")
}

function nic_fact(i,   value) {
	if (nic_pci[i] == "") {
		fact("RDMA devices", nic[i], "bad", "not a PCI device: it cannot reach GPU memory", "Use an RDMA device on PCI.")
		return
	}
	value = nic_pci[i]
	if (software[i] != "") value = value ", software over " software[i]
	if (node[nic_pci[i]] >= 0) value = value ", NUMA node " node[nic_pci[i]]
	fact("RDMA devices", nic[i], "none", value)
	value = iommu[nic_pci[i]]
	if (value == "none")
		fact("RDMA devices", nic[i] " IOMMU", "good", "none")
	else if (value == "identity")
		fact("RDMA devices", nic[i] " IOMMU", "good", "identity: addresses are not translated")
	else
		fact("RDMA devices", nic[i] " IOMMU", "warn", value ": addresses are translated, so data is routed through the CPU", \
			"Put iommu=pt on the kernel's command line and reboot.")
}

function gpu_fact(i,   section) {
	section = "GPU " gpu[i]
	if (driver[i] == "nvidia")
		fact(section, "driver", "good", "nvidia")
	else if (driver[i] == "")
		fact(section, "driver", "bad", "none", "modprobe nvidia; if it does not take the GPU, the kernel's log says why.")
	else
		fact(section, "driver", "bad", driver[i] ": the NVIDIA driver does not have this GPU", \
			"Keep " driver[i] " from taking it (blacklist in /etc/modprobe.d) and reboot.")
}

# pair_facts(GPU): its distance to each RDMA device. That some of many are far
# away is how machines are built; one that has none near is not good.
function pair_facts(g,   section, nearest, n) {
	section = "GPU " gpu[g]
	nearest = 9
	for (n = 1; n <= nics; n++) {
		if (nic_pci[n] == "") continue
		relation(gpu_pci[g], nic_pci[n])
		if (distance < nearest) nearest = distance
	}
	for (n = 1; n <= nics; n++) {
		if (nic_pci[n] == "") continue
		relation(gpu_pci[g], nic_pci[n])
		if (distance > nearest)
			fact(section, nic[n], "none", said)
		else if (distance <= 1)
			fact(section, nic[n], "good", said)
		else if (distance == 2)
			fact(section, nic[n], "good", said, "Only NCCL needs a setting: NCCL_NET_GDR_LEVEL=PHB.")
		else
			fact(section, nic[n], "warn", said ", and no RDMA device is nearer", \
				"Put an RDMA device into a slot of this GPU's root complex. Until then, NCCL uses GPUDirect only with NCCL_NET_GDR_LEVEL=SYS, and may be slower with it.")
		if (distance <= 1) acs_fact(section, nic[n])
	}
}

END {
	if (!nics)
		fact("RDMA devices", "number", "bad", 0, "Load the driver of the RDMA device (/etc/init.d/openibd start); ibv_devices lists what is there.")
	for (i = 1; i <= nics; i++) nic_fact(i)
	if (!gpus)
		fact("GPUs", "number", "bad", 0, "lspci -d 10de: lists NVIDIA's devices; if there are none, check slot, power and firmware.")
	for (g = 1; g <= gpus; g++) {
		gpu_fact(g)
		pair_facts(g)
	}
}
