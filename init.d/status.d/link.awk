# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Judges the PCIe links of GPUs and RDMA devices, and those of the bridges above
# them, by what both ends can. Reads the records of topology.awk.

# link(PCI, UPPER): of the link between a device and what it is plugged into. Sets
# `now`, `reason` if it is not what it could be, and `todo`.
function link(pci, upper, idles,   full, best, narrow) {
	now = speed[pci] " x" width[pci]
	reason = todo = ""
	full = max_width[pci] + 0
	narrow = max_width[upper] + 0
	best = max_speed[pci] + 0
	if (max_speed[upper] + 0 > 0 && max_speed[upper] + 0 < best) best = max_speed[upper] + 0
	if (narrow > 0 && narrow < full) full = narrow
	if (width[pci] + 0 < full) {
		reason = "both ends can x" full
		todo = "Take the card out and put it in again, clean its contacts, look at riser, cable and the firmware's setting of the slot."
	} else if (full < max_width[pci] + 0) {
		reason = "the slot has x" full ", the device can x" max_width[pci]
		todo = "Put the card into a wider slot, or see whether the firmware divides this one (bifurcation)."
	} else if (speed[pci] + 0 < best) {
		if (idles) {
			now = now ", can " best " GT/s: GPUs are slower when idle"
			return
		}
		reason = "both ends can " best " GT/s"
		todo = "See the firmware's setting of the slot's speed; a riser or a cable that is not made for it, or a bad contact, lowers it too."
	}
}

# upper(PCI, DEPTH): who is that many above it on its path.
function upper(pci,   list, n) {
	n = split(path[pci], list, "/")
	return n > 2 ? list[n - 1] : ""
}

function link_fact(section, pci, idles) {
	if (width[pci] + 0 == 0) return
	link(pci, upper(pci), idles)
	if (reason == "")
		fact(section, "link", "good", now)
	else
		fact(section, "link", virtual == "" ? "warn" : "none", now ": " reason, todo)
}

# bridge_links(): each link between two bridges, once. On a path, root port and
# upstream port of a switch are the ends of one, then the next two.
function bridge_links(   pci, list, n, i, good) {
	for (pci in path) {
		n = split(path[pci], list, "/")
		for (i = 3; i < n; i += 2) {
			if (list[i] in linked || width[list[i]] + 0 == 0) continue
			linked[list[i]] = 1
			link(list[i], list[i - 1], 0)
			if (reason == "")
				good++
			else
				fact("PCI", "link " list[i], virtual == "" ? "warn" : "none", now ": " reason, todo)
		}
	}
	if (good) fact("PCI", "links of bridges", "good", "as fast as both ends can: " good)
}

END {
	for (g = 1; g <= gpus; g++) link_fact("GPU " gpu[g], gpu_pci[g], 1)
	for (n = 1; n <= nics; n++) if (software[n] == "") link_fact("RDMA device " nic[n], nic_pci[n], 0)
	bridge_links()
}
