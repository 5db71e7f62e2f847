# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A kernel that takes no modules, or that the module cannot be built for: of
# interest only while the module is not there.

kernel_facts() {
	loaded "$module" && return 0
	if text_of /proc/sys/kernel/modules_disabled && [ "$text" = 1 ]; then
		fact machine modules bad "turned off until the next boot (kernel.modules_disabled)" \
			"Reboot. grep -r modules_disabled /etc/sysctl.d finds who turns it off: load nv_peer_mem before that."
	fi
	[ -z "$installed" ] || return 0
	config=$(kernel_config)
	case $config in
	'') ;;
	*CONFIG_MODULES=y*)
		case $config in
		*CONFIG_RUST=y*) ;;
		*CONFIG_CFI=y* | *CONFIG_CFI_CLANG=y*)
			fact machine Rust bad "not in this kernel (CONFIG_RUST), which checks indirect calls (CONFIG_CFI): the module cannot be built" "Boot another kernel." ;;
		*) fact machine Rust none "not in this kernel (CONFIG_RUST): the module is built without the kernel's crates" ;;
		esac ;;
	*) fact machine modules bad "this kernel takes none (CONFIG_MODULES)" "Boot a kernel of a distribution." ;;
	esac
}

# kernel_config: the settings of the running kernel that matter.
kernel_config() {
	for file in /proc/config.gz "/boot/config-$kernel" "/lib/modules/$kernel/config"; do
		[ -r "$root$file" ] || continue
		case $file in
		*.gz) gzip -dc "$root$file" ;;
		*) cat "$root$file" ;;
		esac | grep -E '^(# )?CONFIG_(MODULES|RUST|CFI|CFI_CLANG)[ =]'
		return
	done
}
