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
		case $(modinfo -F ground nv_peer_mem 2>/dev/null) in
		free | ready) echo "This kernel is built to check its locks, with functions for GPL modules only, which a module beside the proprietary NVIDIA driver must not use. Boot another kernel, or install the open driver." ;;
		*) echo "nv_peer_mem was built with the kernel's own Rust crates, which are for GPL modules only; now the NVIDIA driver is the proprietary one. Build it again, and it does without them: $(rebuild)" ;;
		esac ;;
	*"Key was rejected"* | *"Required key not available"* | *"unavailable key is rejected"* | *"is rejected"* | *"unsigned module loading is restricted"*)
		echo "Secure Boot is on, and $1 or a module that it needs is not signed with a key that this machine trusts. $(enrol "$1")" ;;
	*"nvidia_peermem is loaded"*)
		echo "Unload it: modprobe -r nvidia_peermem && echo 'blacklist nvidia_peermem' >/etc/modprobe.d/nv_peer_mem-nvidia_peermem.conf" ;;
	*"refuses the client"*)
		echo "Another module serves NVIDIA GPU memory already. Unload the one whose client is listed in /sys/kernel/mm/memory_peers." ;;
	*"the values of this parameter are"*)
		echo "Correct the options of nv_peer_mem in /etc/modprobe.d: grep -r nv_peer_mem /etc/modprobe.d. modinfo -p nv_peer_mem lists the parameters." ;;
	*"version magic"*)
		echo "$1 was built for another kernel. Build it for this one: dkms autoinstall -k $(uname -r)" ;;
	*"disagrees about version of symbol"*)
		echo "The RDMA core or the NVIDIA driver was updated after the module was built. Build it again: $(rebuild)" ;;
	*"Unknown symbol ib_register_peer_memory_client"* | *"Unknown symbol ib_unregister_peer_memory_client"*)
		echo "The RDMA core that is loaded has no peer memory. $install_core" ;;
	*"Unknown symbol nvidia_p2p_"*)
		echo "The NVIDIA driver that is loaded does not have this function. Load the one that is installed (reboot), then build the module for it: $(rebuild)" ;;
	*"Unknown symbol"* | *"Exec format error"*)
		echo "$1 was not built for this kernel. Build it again: $(rebuild)" ;;
	*"No such device"*)
		echo "The NVIDIA driver finds no GPU: see lspci -d 10de: and the kernel's log." ;;
	*"not found in directory"*)
		case $1 in
		nvidia) echo "There is no NVIDIA driver for kernel $(uname -r). $install_driver" ;;
		*) echo "There is no $1 for kernel $(uname -r). Install MLNX_OFED or DOCA-OFED." ;;
		esac ;;
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

# rebuild: the command that builds the module anew for the running kernel.
rebuild() {
	version=$(modinfo -F version nv_peer_mem 2>/dev/null)
	echo "dkms build --force nvidia-peer-memory/$version && dkms install --force nvidia-peer-memory/$version"
}

# why_not_installed: why there is no module for the running kernel, and what to do.
why_not_installed() {
	echo "Build it: dkms autoinstall -k $(uname -r); if that skips the kernel, it says why."
}
