#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: a package of changed sources has the nvpm-bin that cargo makes; dkms builds the module with the kernel's Rust crates, with a release's assembly, or with a
# rustc that makes the assembly; also for a proprietary driver, and for a kernel with crates that
# the module does not support
. /checkout/tests/packages/lib.sh

# packaged TEXT PROGRAM SAID: makes the package nvidia-peer-memory from a release whose nvpm-bin is of other
# sources, with the cargo /tmp/cargo, and checks that its nvpm-bin is PROGRAM.
packaged() {
	local tree=/tmp/deb/nvidia-peer-memory-$version
	mkdir /tmp/deb
	tar xzf "/packages/nvidia-peer-memory_$version.orig.tar.gz" -C /tmp/deb
	echo '// changed' >>"$tree/nvpm/src/main.rs"
	told "$1" "$3" env -C "$tree" CARGO=/tmp/cargo dpkg-buildpackage -us -uc -b
	rm -rf /tmp/unpacked
	dpkg-deb -R /tmp/deb/nvidia-peer-memory_*.deb /tmp/unpacked
	check "$1: the package has it" cmp "$2" /tmp/unpacked/usr/lib/nvidia-peer-memory/nvpm-bin
	check "$1: and what it needs" grep -qE '^Depends: .*libc6 \(>= ' /tmp/unpacked/DEBIAN/control
	rm -r /tmp/deb /tmp/unpacked
}
# This cargo takes the time of no compiler. Check nvpm_program runs the real one.
cat >/tmp/cargo <<'CARGO'
#!/bin/sh
[ "$1" != --version ] || exec /usr/bin/cargo --version
while [ "$1" != --target ]; do shift; done
triple=$2
while [ "$1" != --target-dir ]; do shift; done
mkdir -p "$2/$triple/release"
cp /bin/true "$2/$triple/release/nvpm-bin"
CARGO
chmod +x /tmp/cargo
ln -s /usr/bin/rustc /tmp/rustc
packaged "a changed program is compiled by cargo" /bin/true "compiling the program for $(uname -m) with /tmp/cargo"

unpacked

source=/usr/src/nvidia-peer-memory-$version
log=/var/lib/dkms/nvidia-peer-memory/$version/$kver/$(uname -m)/log/make.log

# built WAY TEXT: checks that the module is built in this WAY when a kernel is installed, and that
# dkms' log contains TEXT as the reason for this way.
built() {
	check "dkms builds the module" saying kernel_installed
	as_it_should "$@"
}

as_it_should() {
	check "compiled $1" [ "$(modinfo -k "$kver" -F rust nv_peer_mem)" = "$1" ]
	check "the log says why: $2" grep -E "^Rust +$2" "$log"
	check "modprobe finds all that it needs" loads nv_peer_mem
	check "the marker, too" loads nv_peer_mem_marker
}

# undo: removes the built module, and puts back the files that were moved or edited.
undo() {
	dkms unbuild "nvidia-peer-memory/$version" -k "$kver"
	back
}

built in-kernel "in-kernel: the kernel's own crates"

# The driver becomes a proprietary one. The test then follows the advice that the service prints
# when the module cannot be loaded.
without "${rust[@]}"
with_proprietary_driver
# nvpm advise asks modinfo about the running kernel, which is the kernel of the host. So this
# replacement of modinfo asks about the guest's kernel.
mkdir /tmp/asked
printf '#!/bin/sh\nexec /usr/sbin/modinfo -k %s "$@"\n' "$kver" >/tmp/asked/modinfo
chmod +x /tmp/asked/modinfo
said="nv_peer_mem: module using GPL-only symbols uses symbols x from proprietary module nvidia"
# This test runs in a namespace of processes, by which nvpm would know a container. The directory hides that.
mkdir -p /tmp/place/run/systemd /tmp/place/var/lib
ln -s /var/lib/dkms /tmp/place/var/lib/dkms
advice=$(PATH=/tmp/asked:$PATH NVPM_SYSROOT=/tmp/place nvpm advise nv_peer_mem "$said" |
	sed -n 's/.*, and it does without them: //p')
check "the module is built again, as advised" saying sh -ec "$advice"
as_it_should prebuilt "prebuilt: compiled for the release, because the NVIDIA driver is the proprietary one"
undo

# The mount hides the metadata. This is faster than moving the directory away.
mount -t tmpfs tmpfs "/usr/src/linux-rust-$kver"
without "${rust[@]}"
built prebuilt "prebuilt: compiled for the release, because the headers of kernel ${kver//+/.} lack the Rust metadata"
check "no metadata was made" [ -z "$(ls "/usr/src/linux-rust-$kver")" ]
umount "/usr/src/linux-rust-$kver"
undo

with_config 's/^CONFIG_RUSTC_VERSION_TEXT=.*/CONFIG_RUSTC_VERSION_TEXT="rustc 1.0.0"/'
built prebuilt "prebuilt: compiled for the release, because kernel ${kver//+/.} was built with 'rustc 1.0.0', but rustc here is"
# The assembly is missing, as in a checkout, and must be compiled here.
dkms unbuild "nvidia-peer-memory/$version" -k "$kver"
without "$source/build/prebuilt"
built prebuilt "prebuilt: compiled here first, by rustc, because kernel ${kver//+/.} was built with 'rustc 1.0.0'"
undo

# The in-kernel build fails here, as for a kernel whose crates are newer than the crates that the
# module supports.
echo 'rustflags-y += --of-another-version' >>"$source/build/in-kernel.mk"
built prebuilt "in-kernel: the kernel's own crates"
check "it is said that these did not do" grep -F \
	"nv_peer_mem: the in-kernel build for kernel $kver has failed (see the lines above); now building without its Rust crates (prebuilt)" "$log"
