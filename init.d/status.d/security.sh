# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Secure Boot, what it makes the kernel demand of modules, and what the module
# has to show.

security_facts() {
	fact security "Secure Boot" none "$(secure_boot)"
	demanded=no
	if text_of /sys/kernel/security/lockdown; then
		mode=${text#*\[}
		mode=${mode%%\]*}
		[ "$mode" = none ] || demanded=yes
		fact security lockdown none "$mode"
	fi
	text_of /sys/module/module/parameters/sig_enforce || text=
	[ "$text" != Y ] || demanded=yes
	fact security "signature required" none "$demanded"
	signer=$(modinfo -F signer "$module" 2>/dev/null) || return 0
	if [ -n "$signer" ]; then
		fact security "module signed by" good "$signer"
	elif [ "$demanded" = no ]; then
		fact security "module signed by" none "nobody; this kernel does not require it"
	elif [ "$(installed_by)" = kmod ]; then
		fact security "module signed by" bad "nobody: this kernel does not load it" \
			"Sign it with a key that this machine trusts: /lib/modules/$kernel/build/scripts/sign-file sha256 KEY CERTIFICATE $(modinfo -F filename "$module")"
	else
		fact security "module signed by" bad "nobody: this kernel does not load it" \
			"Let dkms sign it with the key of this machine: mokutil --import /var/lib/dkms/mok.pub, reboot and confirm, then dkms install --force nvidia-peer-memory/$(modinfo -F version "$module")"
	fi
}

# secure_boot: what the firmware says in the fifth byte of its variable.
secure_boot() {
	variable=$root/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
	if [ ! -d "$root/sys/firmware/efi" ]; then
		echo "no: not started by UEFI"
		return
	fi
	case $(od -An -tu1 -j4 -N1 "$variable" 2>/dev/null | tr -d ' ') in
	1) echo on ;;
	0) echo off ;;
	*) echo "unknown: efivars cannot be read (mount -t efivarfs efivarfs /sys/firmware/efi/efivars)" ;;
	esac
}
