# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The module: loaded, installed, with which parameters, and again after a boot.

module_facts() {
	installed=$(modinfo -F version "$module" 2>/dev/null) || installed=
	if loaded "$module"; then
		module_loaded_facts
	elif [ -n "$installed" ]; then
		fact module state bad "not loaded" "$service start; if that fails, it says why."
		fact module installed good "version $installed for kernel $kernel"
	else
		fact module state bad "not loaded, and not installed for kernel $kernel" "$(why_not_installed)"
	fi
	case $(rust) in
	in-kernel) fact module rust none "in-kernel: with the kernel's own Rust crates" ;;
	standalone) fact module rust none "standalone: with a kernel crate of its own" ;;
	prebuilt) fact module rust none "prebuilt: with a kernel crate of its own, compiled before" ;;
	esac
	for file in "$root/sys/module/$module/parameters/"*; do
		[ -r "$file" ] || continue
		base "$file"
		text_of "${file#"$root"}"
		fact module "$base" none "$text"
	done
	boot_fact
}

# rust: how the Rust half of the module that is loaded, or else installed, was compiled.
rust() {
	if text_of "/sys/module/$module/statistics/ground"; then
		printf '%s\n' "$text"
	else
		modinfo -F rust "$module" 2>/dev/null || true
	fi
}

module_loaded_facts() {
	text_of "/sys/module/$module/version" || text=unknown
	if [ ! -d "$root$figures" ]; then
		fact module state warn "loaded, version $text, and not the one that belongs to this service" \
			"$service restart; if that loads the same one again, remove the other package: modinfo $module says which file it is."
	elif [ -n "$installed" ] && [ "$text" != "$installed" ]; then
		fact module state warn "loaded, version $text; version $installed is installed" "$service restart"
	else
		fact module state good "loaded, version $text"
	fi
	if [ -z "$installed" ]; then
		fact module installed bad "not for kernel $kernel: it will be gone after a reboot" "$(why_not_installed)"
	fi
}

boot_fact() {
	refused=$(conf_refused)
	[ -z "$refused" ] || fact module configuration warn "not understood: $refused" "Correct it in $conf: ONBOOT= or MARKER=, and yes or no."
	case $(conf_value ONBOOT) in
	yes) ;;
	no)
		fact module "on boot" none "no: ONBOOT=no in $conf"
		return
		;;
	*)
		fact module "on boot" warn "not loaded: no ONBOOT=yes in $conf" "Write ONBOOT=yes into it, or ONBOOT=no if that is meant."
		return
		;;
	esac
	for link in "$root"/etc/systemd/system/*.wants/nv_peer_mem.service \
		"$root"/etc/rc[2345].d/S*nv_peer_mem "$root"/etc/rc.d/rc[2345].d/S*nv_peer_mem; do
		if [ -e "$link" ] || [ -L "$link" ]; then
			fact module "on boot" good "loaded"
			return
		fi
	done
	fact module "on boot" warn "not loaded: the service is not enabled" "$(enable_command)"
}

enable_command() {
	if [ -d "$root/run/systemd/system" ]; then
		echo "systemctl enable nv_peer_mem"
	elif [ -e "$root/etc/debian_version" ]; then
		echo "update-rc.d nv_peer_mem defaults"
	else
		echo "chkconfig --add nv_peer_mem"
	fi
}
