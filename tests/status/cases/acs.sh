# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Bridges that send packets between their ports up to the root complex.
for control in 4 8 12 127; do
	acs 0000:02:00.0 $control
	look 0
	only_these ACS
	says PCI ACS warn "redirect is on at 0000:02:00.0:" "setpci -s 0000:02:00.0 ECAP_ACS+6.w=0:c"
done
# Source validation, translation blocking, upstream forwarding: no redirection.
acs 0000:02:00.0 19
acs 0000:01:00.0 12
look 0
only_these ''
acs 0000:02:00.0 12
acs 0000:02:01.0 12
look 0
says PCI ACS warn "at 0000:02:00.0 0000:02:01.0:"
# What is not root reads the first 64 bytes. That is said once, and is no warning.
new_machine
head -c 64 /dev/zero >"$root/sys/bus/pci/devices/0000:02:01.0/config"
look 0
only_these ''
says report "not read" none "ACS of the bridges" "Only root"
# And what has no such capability does not redirect.
head -c 4096 /dev/zero >"$root/sys/bus/pci/devices/0000:02:01.0/config"
look 0
only_these ''
