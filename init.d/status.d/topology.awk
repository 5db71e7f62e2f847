# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Judges how GPUs and RDMA devices are connected. Reads, separated by |:
#   gpu    NAME|PCI|DRIVER|PRODUCT|BAR1|LARGEST_BAR1|INSTANCES|COHERENT
#   nic    NAME|PCI|NETWORK_CARD         (the last only for software RDMA)
#   path   PCI|BRIDGES/.../PCI|NUMA_NODE|IOMMU
#   link   PCI|SPEED|WIDTH|MAX_SPEED|MAX_WIDTH
#   config PCI                           and its words in the lines that follow
# The distances have the names that nvidia-smi topo -m gives them. `virtual` is
# set where all this is not what the machine really has.

function fact(section, name, verdict, value, advice) {
	printf "%s\t%s\t%s\t%s\t%s\n", section, name, verdict, value, advice
}

NF == 1 { words = split($0, word, " "); for (w = 1; w <= words; w++) config[reading, size[reading]++] = word[w]; next }
$1 == "gpu" { gpu[++gpus] = $2; gpu_pci[gpus] = $3; driver[gpus] = $4; product[gpus] = $5; bar1[gpus] = $6; largest[gpus] = $7; instances[gpus] = $8; coherent[gpus] = $9 }
$1 == "nic" { nic[++nics] = $2; nic_pci[nics] = $3; software[nics] = $4 }
$1 == "path" { path[$2] = $3; node[$2] = $4; iommu[$2] = $5 }
$1 == "link" { order[++links] = $2; speed[$2] = $3; width[$2] = $4; max_speed[$2] = $5; max_width[$2] = $6 }
$1 == "config" { reading = $2; size[reading] = 0 }

# bit(NUMBER, WHICH)
function bit(number, which) { return int(number / 2 ^ which) % 2 }

# relation(A, B): sets `distance`, 0 to 4, and `bridges`, what lies between them
# below the last one that both have above them.
function relation(a, b,   as, bs, na, nb, common, i) {
	na = split(path[a], as, "/")
	nb = split(path[b], bs, "/")
	bridges = ""
	if (as[1] != bs[1]) {
		# A machine with one node need not say which.
		distance = (node[a] >= 0 && node[a] == node[b]) || (node[a] node[b] == "-1-1" && nodes !~ /[,-]/) ? 3 : 4
		return
	}
	for (common = 1; common < na && common < nb && as[common + 1] == bs[common + 1]; common++)
		;
	if (common == 1) {
		distance = 2
		return
	}
	for (i = common + 1; i < na; i++) bridges = bridges " " as[i]
	for (i = common + 1; i < nb; i++) bridges = bridges " " bs[i]
	distance = (na > nb ? na : nb) - common > 2 ? 1 : 0
}

# acs(BRIDGE): its control register; -1 without one, -2 if it cannot be read.
function acs(bridge,   at, tries, head) {
	if (size[bridge] <= 16) return -2
	# The list of extended capabilities; ACS is number 13.
	for (at = 64; at >= 64 && at < size[bridge] && tries++ < 960; at = int(head / 4194304)) {
		head = config[bridge, at]
		if (head % 65536 == 13) return int(config[bridge, at + 1] / 65536)
	}
	return -1
}

# acs_fact(): bridges between near devices that send packets between their ports
# up to the root complex.
function acs_fact(   list, n, i, control, where, first, unread) {
	n = split(between, list, " ")
	for (i = 1; i <= n; i++) {
		if (list[i] in told) continue
		told[list[i]] = 1
		control = acs(list[i])
		if (control == -2)
			unread = 1
		else if (control >= 0 && (bit(control, 2) || bit(control, 3))) {
			if (where == "") first = list[i]
			where = where " " list[i]
		}
	}
	if (where != "")
		fact("PCI", "ACS", virtual == "" ? "warn" : "none", "redirect is on at" where ": data between GPUs and RDMA devices is routed through the CPU", \
			"For each of them, until the next reboot: setpci -s " first " ECAP_ACS+6.w=0:c. For good: ACS off in the firmware, or pci=disable_acs_redir=" first " on the kernel's command line. Not on a machine that gives these devices to virtual machines: ACS keeps them apart.")
	else if (unread)
		fact("PCI", "ACS", "unread", "ACS of the bridges")
	else if (n)
		fact("PCI", "ACS", "good", "redirect is off")
}

# distance_facts(GPU): its distance to each RDMA device, and the nearest. That
# some of many are far away is how machines are built; one that has none near is
# not good.
function distance_facts(g,   least, nearest, n) {
	least = 9
	for (n = 1; n <= nics; n++) {
		if (!(nic_pci[n] in path)) continue
		relation(gpu_pci[g], nic_pci[n])
		fact("distance", gpu[g] " " nic[n], "none", called[distance])
		if (distance <= 1) between = between bridges
		if (distance < least) { least = distance; nearest = nic[n] } else if (distance == least) nearest = nearest ", " nic[n]
	}
	if (least == 9) return
	if (virtual != "")
		fact("distance", gpu[g] " nearest", "none", nearest)
	else if (least <= 1)
		fact("distance", gpu[g] " nearest", "good", nearest)
	else if (coherent[g] != "" && least <= 3)
		# It goes through the processor, whose memory this is, in any case.
		fact("distance", gpu[g] " nearest", "good", nearest, "Only NCCL before 2.27 needs a setting: NCCL_NET_GDR_C2C=1, which 2.26 knows.")
	else if (least == 2)
		fact("distance", gpu[g] " nearest", "good", nearest, "Only NCCL needs a setting: NCCL_NET_GDR_LEVEL=PHB.")
	else
		fact("distance", gpu[g] " nearest", "warn", nearest, \
			"No RDMA device is near. Put one into a slot of this GPU's " (coherent[g] != "" ? "processor" : "root complex") ". Until then, NCCL uses GPUDirect only with NCCL_NET_GDR_LEVEL=SYS, and may be slower with it.")
}

END {
	split("PIX PXB PHB NODE SYS", names, " ")
	for (i = 0; i < 5; i++) called[i] = names[i + 1]
	for (g = 1; g <= gpus; g++)
		if (driver[g] !~ /^vfio/) distance_facts(g)
	acs_fact()
}
