# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What to do when a module cannot be loaded: the kernel gives its reason in its
# log, in words of its own, and modprobe one word of errno.

install_driver="Install NVIDIA's kernel modules, the open or the proprietary ones (nvidia-open-kernel-dkms or nvidia-kernel-dkms on Debian), and reboot."
install_core="Install MLNX_OFED or DOCA-OFED and restart it (/etc/init.d/openibd restart); the kernel's own RDMA core is not enough."

# advice MODULE TEXT: what to do about MODULE, of which modprobe and the kernel
# have said TEXT. The first line that fits counts: kernels say several things.
advice() {
	case $2 in
	# Without the first words it is said of every module that such a driver serves.
	*"GPL-only symbols"*"from proprietary module"*)
		case $(modinfo -F rust nv_peer_mem 2>/dev/null) in
		standalone | prebuilt) echo "This kernel is built to check its locks, with functions for GPL modules only, which a module beside the proprietary NVIDIA driver must not use. Boot another kernel, or install the open driver." ;;
		*) echo "nv_peer_mem was built with the kernel's own Rust crates, which are for GPL modules only; now the NVIDIA driver is the proprietary one. Build it again, and it does without them: $(rebuild)" ;;
		esac ;;
	*"Key was rejected"* | *"Required key not available"* | *"unavailable key is rejected"* | *"is rejected"* | *"unsigned module loading is restricted"*)
		echo "Secure Boot is on, and $1 or a module that it needs is not signed with a key that this machine trusts. $(enrol "$1")" ;;
	*"' is unsupported"*)
		echo "SLES loads no module that SUSE does not support unless it is allowed to: echo 'allow_unsupported_modules 1' >/etc/modprobe.d/10-unsupported-modules.conf" ;;
	*"unning install command"*)
		name=$(printf '%s' "$2" | sed -n 's/.*for module \([[:alnum:]_-]*\).*/\1/p' | head -n 1)
		echo "A line in /etc/modprobe.d forbids ${name:-"$1"}: remove it. $(forbidden "${name:-"$1"}")" ;;
	*"not supported by open"* | *"does not include the required GPU"*)
		echo "The open NVIDIA driver does not serve this GPU: it is older than Turing (V100, P100). Install the proprietary one, then build nv_peer_mem again: $(rebuild)" ;;
	*"requires use of the NVIDIA open kernel modules"*)
		echo "The proprietary NVIDIA driver does not serve this GPU: it is Blackwell or newer. Install the open one." ;;
	*"Legacy drivers"*)
		echo "This NVIDIA driver does not serve this GPU any more. The kernel's log names the last series that does; nv_peer_mem needs 535 or later." ;;
	*"probe routine was not called"* | *"obtained ownership"*)
		echo "Another driver has the GPU: lspci -k -d 10de: says which. If it is nouveau: echo 'blacklist nouveau' >/etc/modprobe.d/blacklist-nouveau.conf, make the initramfs anew (update-initramfs -u, or dracut -f) and reboot. If it is vfio-pci, the GPU is for a virtual machine: load nv_peer_mem there." ;;
	*"API mismatch"*)
		echo "The NVIDIA driver was updated while the old one was loaded: programs and kernel module have two versions. Reboot." ;;
	*"nvidia_peermem is loaded"*)
		echo "Unload it: modprobe -r nvidia_peermem && echo 'blacklist nvidia_peermem' >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf" ;;
	*"refuses the client"*)
		echo "Another module serves NVIDIA GPU memory already. Unload the one whose client is listed in /sys/kernel/mm/memory_peers." ;;
	*"the values of this parameter are"*)
		echo "Correct the options of nv_peer_mem in /etc/modprobe.d: grep -r nv_peer_mem /etc/modprobe.d. modinfo -p nv_peer_mem lists the parameters." ;;
	*"version magic"*)
		case $1 in
		nv_peer_mem) echo "$1 was built for another kernel. $(unlink_weak)Build it for this one: $(build_for_kernel)" ;;
		*) echo "$1 was built for another kernel. Install the package that it comes from again, for kernel $(uname -r): modinfo -n $1 names the file." ;;
		esac ;;
	*"disagrees about version of symbol"*) disagrees "$2" ;;
	*"Unknown symbol ib_register_peer_memory_client"* | *"Unknown symbol ib_unregister_peer_memory_client"*)
		echo "The RDMA core that is loaded has no peer memory. $install_core" ;;
	*"Unknown symbol nvidia_p2p_"*)
		[ -d "${NVPM_SYSROOT-}/sys/module/nvidia" ] || {
			echo "The NVIDIA driver is not loaded: modprobe nvidia, and see the kernel's log. $(forbidden nvidia)"
			return
		}
		echo "The NVIDIA driver that is loaded does not have this function. Load the one that is installed (reboot), then build the module for it: $(rebuild)" ;;
	*"Unknown symbol"* | *"Exec format error"*)
		case $1 in
		nv_peer_mem) echo "$1 was not built for this kernel. $(unlink_weak)Build it again: $(rebuild)" ;;
		*) echo "$1 was not built for this kernel. Install the package that it comes from again, for kernel $(uname -r): modinfo -n $1 names the file." ;;
		esac ;;
	*"No such device"*)
		echo "The NVIDIA driver finds no GPU: see lspci -d 10de: and the kernel's log." ;;
	*"not found in directory"*)
		case $1 in
		nv_peer_mem) echo "There is no module for kernel $(uname -r). $(why_not_installed)" ;;
		nvidia) echo "There is no NVIDIA driver for kernel $(uname -r). $install_driver" ;;
		*) echo "There is no $1 for kernel $(uname -r). Install MLNX_OFED or DOCA-OFED." ;;
		esac ;;
	*"peration not permitted"*) not_permitted "$1" ;;
	*"annot allocate memory"*)
		echo "The kernel has no memory left for the module: see free -m, then try again." ;;
	esac
}

# signing_key: the file of the key with which dkms signs modules here, in $key: what it was
# told, on Ubuntu that of the machine's owner, elsewhere its own.
signing_key() {
	key=$(cat "${NVPM_SYSROOT-}/etc/dkms/framework.conf" "${NVPM_SYSROOT-}"/etc/dkms/framework.conf.d/*.conf 2>/dev/null |
		sed -n 's/^[[:space:]]*mok_certificate=["'\'']\{0,1\}\([^"'\'']*\).*/\1/p' | tail -n 1)
	[ -z "$key" ] || return 0
	case $(sed -n 's/^ID=["'\'']\{0,1\}//p' "${NVPM_SYSROOT-}/etc/os-release" 2>/dev/null) in
	ubuntu*) key=/var/lib/shim-signed/mok/MOK.der ;;
	*) key=/var/lib/dkms/mok.pub ;;
	esac
}

# enrol MODULE: how this machine comes to trust a MODULE that was built on it. The firmware
# may have the key already: then that is not what is missing.
enrol() {
	if [ "$1" = nv_peer_mem ] && [ "$(installed_by)" = kmod ]; then
		echo "Sign it with a key that this machine trusts: /lib/modules/$(uname -r)/build/scripts/sign-file sha256 KEY CERTIFICATE $(modinfo -F filename "$1")"
		return
	fi
	signing_key
	if [ ! -e "${NVPM_SYSROOT-}$key" ]; then
		echo "There is no key $key yet. dkms makes it when it builds a module: $(build_again "$1"). Then: mokutil --import $key, reboot and confirm."
		return
	fi
	case $(mokutil --test-key "$key" 2>/dev/null) in
	*"already enrolled"* | *"built-in trusted keyring"*)
		echo "The key of this machine, $key, is enrolled already, so $1 was not signed with it (modinfo -F signer $1). Build it again: $(build_again "$1")" ;;
	*"enrollment request"*)
		echo "The key $key waits to be confirmed: reboot, and choose Enroll MOK when the machine starts." ;;
	*)
		echo "Enrol the key that modules are signed with here, reboot and confirm: mokutil --import $key" ;;
	esac
}

# build_again MODULE: what builds it on this machine.
build_again() {
	case $1 in
	nv_peer_mem) rebuild ;;
	nvidia) echo "install the NVIDIA driver's dkms package again" ;;
	*) echo "install the package again that $1 is from" ;;
	esac
}

# disagrees TEXT: which module was built for another version of what it needs.
disagrees() {
	case $(printf '%s' "$1" | grep -o '[[:alnum:]_]*: disagrees' | head -n 1) in
	ib_* | mlx* | rdma_*)
		echo "OFED is updated by half: modules of two versions are loaded or installed (modinfo -n ib_core ib_uverbs shows where they come from). Install OFED again for kernel $(uname -r), make the initramfs anew (update-initramfs -u, or dracut -f) and reboot." ;;
	nvidia*)
		echo "The NVIDIA driver was built for another kernel. Install it again for kernel $(uname -r) and reboot." ;;
	*)
		echo "The RDMA core or the NVIDIA driver was updated after the module was built. $(unlink_weak)Build it again: $(rebuild)" ;;
	esac
}

# not_permitted MODULE: what keeps root from loading any module.
not_permitted() {
	if [ "$(cat "${NVPM_SYSROOT-}/proc/sys/kernel/modules_disabled" 2>/dev/null)" = 1 ]; then
		echo "This kernel loads no more modules until it is booted again: something has set kernel.modules_disabled (grep -r modules_disabled /etc/sysctl.conf /etc/sysctl.d). Load nv_peer_mem before that."
	elif grep -qE '\[(integrity|confidentiality)\]' "${NVPM_SYSROOT-}/sys/kernel/security/lockdown" 2>/dev/null; then
		echo "The kernel is locked down and takes signed modules only. $(advice "$1" "Key was rejected by service")"
	else
		echo "The kernel does not let this shell load modules: in a container, do it on the host."
	fi
}

# forbidden MODULE: the lines that have modprobe run a program that does nothing.
forbidden() {
	grep -sE "^[[:space:]]*install[[:space:]]+$1[[:space:]].*(false|true)" /dev/null "${NVPM_SYSROOT-}"/etc/modprobe.d/*.conf \
		"${NVPM_SYSROOT-}"/run/modprobe.d/*.conf "${NVPM_SYSROOT-}"/usr/lib/modprobe.d/*.conf \
		"${NVPM_SYSROOT-}"/lib/modprobe.d/*.conf | sed "s,^${NVPM_SYSROOT-},," | head -n 1
}

# installed_by: where the module comes from: kmod, the package for one kernel; make,
# without packages; or else dkms, which builds it where there is none yet.
installed_by() {
	file=$(modinfo -F filename nv_peer_mem 2>/dev/null)
	if [ -d "${NVPM_SYSROOT-}/var/lib/dkms/nvidia-peer-memory" ]; then
		echo dkms
	elif [ "${file#*/nvidia_peer_memory/}" != "$file" ] || rpm -q --whatprovides nvidia_peer_memory-kmod >/dev/null 2>&1; then
		echo kmod
	elif [ "${file#*/extra/}" != "$file" ]; then
		echo make
	else
		echo dkms
	fi
}

# rebuild: the command that builds the module anew for the running kernel.
rebuild() {
	version=$(modinfo -F version nv_peer_mem 2>/dev/null)
	case $(installed_by) in
	kmod) build_package ;;
	make) echo "make && make install, in the module's source" ;;
	*) echo "dkms build --force nvidia-peer-memory/$version && dkms install --force nvidia-peer-memory/$version" ;;
	esac
}

# build_for_kernel: the command that builds it for a running kernel that has none.
build_for_kernel() {
	case $(installed_by) in
	kmod) build_package ;;
	make) echo "make && make install, in the module's source" ;;
	*) echo "dkms autoinstall -k $(uname -r)" ;;
	esac
}

build_package() {
	echo "rpmbuild --rebuild --define 'kernel_version $(uname -r)' nvidia_peer_memory-*.src.rpm, then rpm -U --replacepkgs the kmod package that it wrote"
}

# unlink_weak: RHEL's weak-modules makes links to a module of another kernel; it does
# not know about symbols of OFED and of the NVIDIA driver.
unlink_weak() {
	file=$(modinfo -F filename nv_peer_mem 2>/dev/null)
	case $file in
	*/weak-updates/*) echo "$file is weak-modules' link to the module of another kernel: rm $file && depmod. " ;;
	esac
}

# why_not_installed: why there is no module for the running kernel, and what to do.
why_not_installed() {
	case $(installed_by) in
	dkms) echo "Build it: dkms autoinstall -k $(uname -r); if that skips the kernel, it says why." ;;
	kmod) echo "The kmod package is for another kernel. Build one for this: $(build_for_kernel)" ;;
	*) echo "Build it: $(build_for_kernel)" ;;
	esac
}
