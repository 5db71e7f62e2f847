#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: a release has what machines without Rust need, and nothing of the machine that made it; one made without Rust says what it lacks; checksums, and what it was made with; /tmp may be noexec
. /checkout/tests/packages/lib.sh

name=nvidia-peer-memory-$version
tarball=/packages/nvidia-peer-memory_$version.orig.tar.gz
mkdir /tmp/srpm /tmp/there
# By a file: cpio stops at the last entry, which can end who still writes to it.
rpm2cpio /packages/*.src.rpm >/tmp/srpm.cpio
(cd /tmp/srpm && cpio -i --quiet </tmp/srpm.cpio)
check "both source packages have the same source" cmp "$tarball" "/tmp/srpm/$name.tar.gz"
tar xzf "$tarball" -C /tmp/there
for arch in x86_64 aarch64; do
	file=/tmp/there/$name/src/prebuilt/$arch.S
	check "there is the compiled Rust for $arch" grep -q '^nvpm_[a-z_]*:$' "$file"
	check "with its licence" grep -qF 'AND (MIT OR Apache-2.0)' "$file"
	check "without a path of this machine" fails grep -nE '/(usr|root|home|tmp|var|opt|srv|mnt|in)/' "$file"
	check "its panics name files of the source" grep -qE '"src/[a-z_/]*\.rs' "$file"
	check "and of Rust's library, and no others" fails grep -vE '^(src|library)/' <(grep -oE '[^" ]*\.rs' "$file")
	check "the package for dkms has it" grep -q "/src/prebuilt/$arch.S\$" \
		<(dpkg-deb --fsys-tarfile /packages/nvidia-peer-memory-dkms_*_all.deb | tar -t)
	check "so has that of rpm" grep -q "/src/prebuilt/$arch.S\$" <(rpm -qlp /packages/nvidia_peer_memory-dkms-*.rpm)
done
check "and nothing else that was compiled" fails grep -E '\.(o|rlib|a|s)$|free\.build' <(tar tzf "$tarball")

# What was delivered can be checked, and says what it was made with.
check "the checksums are right" saying env -C /packages sha256sum -c SHA256SUMS
check "they are of all files" [ "$(wc -l </packages/SHA256SUMS)" = 4 ]
mkdir /tmp/damaged
cp /packages/{SHA256SUMS,*.orig.tar.gz,*.src.rpm,*.pyz,*.made-with} /tmp/damaged/
for file in /tmp/damaged/nv*; do
	cp "$file" /tmp/whole
	printf x | dd of="$file" bs=1 seek=40 conv=notrunc status=none
	refused "a byte of ${file##*/} that is not right is noticed" "${file##*/}: FAILED" env -C /tmp/damaged sha256sum -c SHA256SUMS
	mv /tmp/whole "$file"
done
made_with=/packages/nvidia-peer-memory_$version.made-with
cat "$made_with"
check "the release is named" grep -qx "release   nvidia-peer-memory $version-1" "$made_with"
check "and its commit" grep -qxE 'commit    [0-9a-f]{40}' "$made_with"
check "and the commit's date" grep -qxE 'date      20[0-9-]{8}T[0-9:]{8}Z' "$made_with"
check "and the compiler" grep -qE "^rustc     $(rustc --version | cut -d' ' -f2) .*, LLVM [0-9.]+$" "$made_with"
for tool in git gzip rpmbuild; do
	check "and $tool" grep -qE "^$tool +[0-9]+\." "$made_with"
done
check "and nothing of the machine that made it" fails grep -e / -e "$(uname -n)" "$made_with"

# nvpm as one file, in what is like a container: nothing of ours is installed, /sys is there to be
# read, neither libcuda nor a device is there, and the user is nobody.
pyz=/packages/nvpm-$version.pyz
in_pod() {
	unshare --mount bash -c 'mount -t sysfs -o ro sysfs /sys && cd / && exec setpriv --reuid 65534 --regid 65534 --clear-groups \
		env -i PATH=/usr/bin:/bin "$@"' in_pod python3 "$pyz" "$@"
}
check "nvpm is one file" saying in_pod --version
check "of this version" [ "$(in_pod --version)" = "nvpm $version" ]
check "and Python 3.6 can read it, which knows no comments" [ "$(tail -c 2 "$pyz" | od -An -tx1)" = " 00 00" ]
check "it says what is missing" grep -q "cannot be registered for RDMA here: there is no NVIDIA GPU" <(in_pod)
check "and what needs attention" grep -q '^  !!  GPUs, number: 0' <(in_pod status)
code=0
in_pod check >/tmp/said || code=$?
check "and a monitor" [ "$code $(cut -d' ' -f2-3 /tmp/said | head -c 8)" = "2 CRITICAL" ]
code=0
in_pod selftest >/tmp/said 2>&1 || code=$?
check "selftest says what it lacks" [ "$code $(grep -c 'no libcuda' /tmp/said)" = "3 1" ]
check "a report can be made" grep -q '^==== versions.txt' <(in_pod report 2>/tmp/err)
check "without any trace of Python" fails grep -r Traceback /tmp/said /tmp/err
(umask 022 && cd /tmp && install -d -m 777 /tmp/reports)
check "and written" saying in_pod report --write /tmp/reports/one.tar.gz
check "once" fails in_pod report --write /tmp/reports/one.tar.gz

# Of a checkout, where programs in /tmp are not to be run.
cd "/tmp/there/$name" || exit
rm -r src/prebuilt
git init --quiet
git -c user.name=lab -c user.email=lab@localhost add .
git -c user.name=lab -c user.email=lab@localhost commit --quiet -m "$version"
mkdir /tmp/noexec
mount -t tmpfs -o noexec tmpfs /tmp/noexec
export TMPDIR=/tmp/noexec
check "a release can be made" saying env OUT=/tmp/made ./build_release.sh --without-rpm
for arch in x86_64 aarch64; do
	check "with the same Rust for $arch" cmp <(tar xzOf /tmp/made/*.orig.tar.gz "$name/src/prebuilt/$arch.S") \
		<(tar xzOf "$tarball" "$name/src/prebuilt/$arch.S")
done
refused "where none is to be run at all, it is said" "no program can be run in /tmp/noexec, nor in /tmp/noexec/out: are they mounted noexec?" \
	env OUT=/tmp/noexec/out ./build_release.sh
check "and what to do" says "Choose another directory to work in with TMPDIR="
unset TMPDIR
check "nothing is left behind" [ -z "$(find /tmp/noexec /tmp/made -name 'nv.*')" ]
umount /tmp/noexec

# The same on a machine without Rust.
without "${rust[@]}"
refused "without Rust no source packages are made" "rustc 1.78 or later with the source of its library is missing (packages rustc and rust-src" \
	env OUT=/tmp/lacking ./build_release.sh
check "and what the packages would lack" says "The packages would lack src/prebuilt/x86_64.S src/prebuilt/aarch64.S."
check "and what else can be done" says "or choose --without-rust for packages that build only on machines with Rust."
check "nothing was made" [ -z "$(ls /tmp/lacking)" ]
told "who wants them has them made" "rustc 1.78 or later with the source of its library is missing (packages rustc and rust-src" \
	env OUT=/tmp/lacking ./build_release.sh --without-rust
check "and what" says "These packages lack src/prebuilt/x86_64.S src/prebuilt/aarch64.S: they build only on machines with Rust."
check "they do lack it" fails grep src/prebuilt/ <(tar tzf /tmp/lacking/*.orig.tar.gz)
# Nor do they depend on the kernel that runs there.
mkdir /tmp/another
printf '#!/bin/sh\n[ "$*" = -r ] && echo 9.9-other || exec /usr/bin/uname "$@"\n' >/tmp/another/uname
chmod +x /tmp/another/uname
check "it is made beside another kernel" saying env PATH="/tmp/another:$PATH" OUT=/tmp/elsewhere ./build_release.sh --without-rust
check "of the same bytes" cmp /tmp/lacking/*.src.rpm /tmp/elsewhere/*.src.rpm
# Without a tool that it needs it makes nothing, and names the package.
mv /usr/bin/rpmbuild /tmp/
refused "without rpmbuild no source packages are made" "rpmbuild is missing (package rpm). Install it, or choose --without-rpm" \
	env OUT=/tmp/half ./build_release.sh --without-rust
check "nothing was made" [ ! -e /tmp/half ]
check "who wants the tarball alone has it made" saying env OUT=/tmp/half ./build_release.sh --without-rust --without-rpm
check "and it is the only package" [ "$(cd /tmp/half && echo *)" = \
	"SHA256SUMS nvidia-peer-memory_$version.made-with nvidia-peer-memory_$version.orig.tar.gz nvpm-$version.pyz" ]
check "made with neither" [ "$(grep -c ' none$' /tmp/half/*.made-with)" = 2 ]
check "the checksums are of it" saying env -C /tmp/half sha256sum -c SHA256SUMS
mv /tmp/rpmbuild /usr/bin/

# As README.md says, of a tarball in another place.
# shellcheck disable=SC2088 # as it is written there
sed -n '\,^    cd ~/nv_peer_mem-release,,/^    dpkg-buildpackage/s,^    ,,p' "/tmp/there/$name/README.md" |
	sed "s,~/nv_peer_mem-release,/tmp/lacking," >/tmp/as_written
check "README.md says how packages are made" test "$(wc -l </tmp/as_written)" = 2
lacking="without src/prebuilt/$(uname -m).S it builds only on machines with Rust."
told "packages are made of them so" "nvidia-peer-memory-dkms: $lacking" sh -e /tmp/as_written
told "rpm packages, too" "nvidia_peer_memory-dkms: $lacking" \
	rpmbuild --rebuild --nodeps --without kmod --define "_topdir /tmp/rpm" /tmp/lacking/*.src.rpm

# What somebody else has put into the directory for the results.
mkdir /tmp/planted
: >/tmp/kept
ln -s /tmp/kept "/tmp/planted/nvidia-peer-memory_$version.orig.tar.gz"
refused "a link where the tarball belongs" "is a symbolic link, which this does not follow: remove it, or choose another directory with OUT=." \
	env OUT=/tmp/planted ./build_release.sh --without-rust
check "what it leads to is as it was" test ! -s /tmp/kept
check "and nothing was delivered" test -z "$(find /tmp/planted -type f)"

# Where it belongs to nobody else, it takes the place of an earlier one.
rm /tmp/planted/*
echo earlier >"/tmp/planted/nvidia-peer-memory_$version.orig.tar.gz"
check "an earlier tarball is replaced" saying env OUT=/tmp/planted ./build_release.sh --without-rust
for file in /tmp/planted/*; do
	check "whole, and later the same bytes: ${file##*/}" cmp "/tmp/lacking/${file##*/}" "$file"
done
check "nothing else is left there" [ "$(find /tmp/planted -type f | wc -l)" = 5 ]
mkdir "/tmp/named" "/tmp/named/nvidia-peer-memory_$version.orig.tar.gz"
check "a directory of that name is refused" fails saying env OUT=/tmp/named ./build_release.sh --without-rust
check "and is left empty" [ -z "$(find /tmp/named -type f)" ]
