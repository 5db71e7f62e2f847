#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: a release has what machines without Rust need, and nothing of the machine that made it; one made without Rust says what it lacks
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

# The same on a machine without Rust, of a checkout.
cd "/tmp/there/$name" || exit
rm -r src/prebuilt
git init --quiet
git -c user.name=lab -c user.email=lab@localhost add .
git -c user.name=lab -c user.email=lab@localhost commit --quiet -m "$version"
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
# Without a tool that it needs it makes nothing, and names the package.
mv /usr/bin/rpmbuild /tmp/
refused "without rpmbuild no source packages are made" "rpmbuild is missing (package rpm). Install it, or choose --without-rpm" \
	env OUT=/tmp/half ./build_release.sh --without-rust
check "nothing was made" [ ! -e /tmp/half ]
check "who wants the tarball alone has it made" saying env OUT=/tmp/half ./build_release.sh --without-rust --without-rpm
check "and it is the only one" [ "$(ls /tmp/half)" = "nvidia-peer-memory_$version.orig.tar.gz" ]
mv /tmp/rpmbuild /usr/bin/

# As README.md says, of a tarball in another place.
sed -n '/^    dir=/,/^    dpkg-buildpackage/s,^    ,,p' "/tmp/there/$name/README.md" |
	sed "s,/tmp/nvidia-peer,/tmp/lacking/nvidia-peer," >/tmp/as_written
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
for suffix in orig.tar.gz src.rpm; do
	check "whole, and later the same bytes: $suffix" cmp /tmp/lacking/*.$suffix /tmp/planted/*.$suffix
done
check "nothing else is left there" [ "$(find /tmp/planted -type f | wc -l)" = 2 ]
mkdir "/tmp/named" "/tmp/named/nvidia-peer-memory_$version.orig.tar.gz"
check "a directory of that name is refused" fails saying env OUT=/tmp/named ./build_release.sh --without-rust
check "and is left empty" [ -z "$(find /tmp/named -type f)" ]
