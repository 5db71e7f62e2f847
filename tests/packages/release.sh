#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Shows: a release suits machines without Rust and contains no path of its builder's machine; a
# release made without Rust names the missing files; the checksums and the record of tools are
# right; and a release can be made with a noexec /tmp
. /checkout/tests/packages/lib.sh

# The layer rustcore has the compiled core, which takes most of the time of an assembly.
# The layers nvpmprogram have nvpm-bin, as check nvpm_program compiles it again.
export NVPM_RUST_CORE=/opt/rust-core NVPM_PROGRAMS=/opt/nvpm-programs
name=nvidia-peer-memory-$version
tarball=/packages/nvidia-peer-memory_$version.orig.tar.gz
mkdir /tmp/srpm /tmp/there
# The archive is written to a file. In a pipe, a signal would end rpm2cpio, because cpio stops
# reading at the last entry.
rpm2cpio /packages/*.src.rpm >/tmp/srpm.cpio
(cd /tmp/srpm && cpio -i --quiet </tmp/srpm.cpio)
check "both source packages have the same source" cmp "$tarball" "/tmp/srpm/$name.tar.gz"
tar xzf "$tarball" -C /tmp/there
for arch in x86_64 aarch64; do
	check "there is the compiled Rust for $arch" grep -q '^nvpm_[a-z_]*:$' "/tmp/there/$name/build/prebuilt/$arch.S"
	check "and of the library" grep -q '^ioctl:$' "/tmp/there/$name/preload/prebuilt/$arch.S"
	for file in "/tmp/there/$name"/{build,preload}/prebuilt/"$arch.S"; do
		check "with its licence" grep -qF 'AND (MIT OR Apache-2.0)' "$file"
		check "without a path of this machine" fails grep -nE '/(usr|root|home|tmp|var|opt|srv|mnt|in)/' "$file"
	done
	file=/tmp/there/$name/build/prebuilt/$arch.S
	# The module's own functions have no panics.
	check "its panics name files of Rust's library" grep -qE '"library/[a-z_/]*\.rs' "$file"
	check "and no others" fails grep -vE '^library/' <(grep -oE '[^" ]*\.rs' "$file")
	check "the package for dkms has it" grep -q "/build/prebuilt/$arch.S\$" \
		<(dpkg-deb --fsys-tarfile /packages/nvidia-peer-memory-dkms_*_all.deb | tar -t)
	check "so has that of rpm" grep -q "/build/prebuilt/$arch.S\$" <(rpm -qlp /packages/nvidia_peer_memory-dkms-*.rpm)
done
check "and nothing else that was compiled" fails grep -E '\.(o|rlib|a|s|so)$|(free|rust)\.build' <(tar tzf "$tarball")

check "what cargo is told about the library is there" [ -e "/tmp/there/$name/preload/.cargo/config.toml" ]

# The preloaded library is linked for both processors, and does not need a particular version of the
# C library. The same tools make the same file in any directory.
library=/packages/libnvpm_preload-$version
examined "$library-x86_64.so" x86_64
examined "$library-aarch64.so" aarch64
quiet "$library-$(uname -m).so"
undefined() { readelf --dyn-syms -W "$1" | awk '$7 == "UND" && $8 { print $8 }' | sort; }
check "both call the same functions" diff <(undefined "$library-x86_64.so") <(undefined "$library-aarch64.so")
check "of no version" fails grep @ <(undefined "$library-x86_64.so")
cp -a "/tmp/there/$name" /tmp/elsewhere
check "another tree's is compiled" saying env NVPM_ARCH=aarch64 sh /tmp/elsewhere/preload/build assembly
check "to the same" cmp "/tmp/there/$name/preload/prebuilt/aarch64.S" /tmp/elsewhere/preload/prebuilt/aarch64.S
check "and linked" saying sh /tmp/elsewhere/preload/link aarch64 /tmp/aarch64.so
check "to the same, too" cmp "$library-aarch64.so" /tmp/aarch64.so

# A machine without Rust makes the library from the assembly. A machine with cargo makes it from the
# sources.
without "${rust[@]}"
check "without Rust it is built by cc" saying make -C /tmp/elsewhere preload
back
examined /tmp/elsewhere/preload/libnvpm_preload.so "$(uname -m)"
check "and by cargo" saying env -C /tmp/elsewhere/preload cargo build --release --offline
check "it exports the same" diff <(exports "$library-$(uname -m).so") <(exports /tmp/elsewhere/preload/target/release/libnvpm_preload.so)
without "${rust[@]}"
echo '// changed' >>/tmp/elsewhere/preload/src/lib.rs
refused "of other sources it is not built" "preload/prebuilt/$(uname -m).S was compiled from other sources than these; and to make it, rustc 1.78 or later" \
	make -C /tmp/elsewhere preload
rm "/tmp/elsewhere/preload/prebuilt/$(uname -m).S"
refused "nor without the assembly" "preload/prebuilt/$(uname -m).S, which a release contains, is missing; and to make it, rustc 1.78 or later" \
	make -C /tmp/elsewhere preload
refused "nor without a compiler" "there is no C compiler: install gcc, or give CC=." make -C /tmp/elsewhere preload CC=/none
back
rm -r /tmp/elsewhere

# The program of each processor is in the packages and a file of its own.
for arch in x86_64 aarch64; do
	single=/packages/nvpm-$version-$arch
	check "nvpm-bin for $arch is one file" [ "$(stat -c %a "$single")" = 755 ]
	check "the packages have the same" cmp "$single" "/tmp/there/$name/nvpm/prebuilt/$arch"
	check "it is of these sources" sh "/tmp/there/$name/nvpm/compile" is-current "$arch"
	check "it is for $arch" grep -qi "Machine: .*${arch/_/-}" <(readelf -h "$single")
	check "it needs the C library of 2018" [ "$(objdump -T "$single" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)" = GLIBC_2.28 ]
	check "it names no place where it was compiled" fails grep -aE '/(opt/nvpm|tmp/nvpm|in/|root/[^.])' "$single"
	check "what was bound can be read only" grep -q GNU_RELRO <(readelf -lW "$single")
	check "all is bound when it is loaded" grep -q 'FLAGS.*NOW' <(readelf -dW "$single")
done
check "the sources of its crates are there" cmp "/packages/nvpm-$version-crates.tar.xz" "/tmp/there/$name/nvpm/prebuilt/crates.tar.xz"
echo "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)" >/tmp/failure
# answers COMMAND...: checks that the command explains the log, for any user and without a package.
answers() {
	local code=0
	(cd / && exec setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH=/usr/bin:/bin "$@" explain /tmp/failure) >"$said" || code=$?
	cat "$said"
	check "$1 explains a log" [ "$code" = 3 ]
	check "$1 names the cause" says "Cause (certain): the loaded ib_core is the distribution's, without peer memory"
}
answers "/packages/nvpm-$version-$(uname -m)"
# The repository of the lab's release leaves the image's directory out.
cp -a "/tmp/there/$name" /tmp/with_image
cp -a /checkout/container /tmp/with_image/
check "an image has it, too" saying sh /tmp/with_image/container/install-release /tmp/with_image /tmp/image
check "the same" cmp "/packages/nvpm-$version-$(uname -m)" /tmp/image/usr/lib/nvidia-peer-memory/nvpm-bin
answers /tmp/image/usr/sbin/nvpm
check "and the program that keeps the module" saying /tmp/image/usr/bin/nv-peer-mem --help
check "which is in the release for both" cmp "/tmp/there/$name/nvpm/prebuilt/keeper-$(uname -m)" /tmp/image/usr/bin/nv-peer-mem
for arch in x86_64 aarch64; do
	file=/tmp/there/$name/nvpm/prebuilt/keeper-$arch
	check "namely for $arch" grep -qi "Machine: .*${arch/_/-}" <(readelf -h "$file")
	check "where it names no place where it was compiled" fails grep -aE '/(opt/nvpm|tmp/nvpm|in/|root/[^.])' "$file"
done
rm "/tmp/with_image/nvpm/prebuilt/keeper-$(uname -m)"
refused "an image without it is not made" "nvpm/prebuilt/keeper-$(uname -m)" sh /tmp/with_image/container/install-release /tmp/with_image /tmp/another_image
rm -r /tmp/with_image/nvpm/prebuilt /tmp/image
refused "an image without it is not made" "nvpm/prebuilt/$(uname -m)" sh /tmp/with_image/container/install-release /tmp/with_image /tmp/image
rm -rf /tmp/with_image /tmp/image

# The release contains checksums, and a record of the tools that made it.
check "the checksums are right" saying env -C /packages sha256sum -c SHA256SUMS
check "they are of all files" [ "$(wc -l </packages/SHA256SUMS)" = 8 ]
mkdir /tmp/damaged
cp /packages/{SHA256SUMS,*.orig.tar.gz,*.src.rpm,nvpm-[0-9]*,*.so,*.made-with} /tmp/damaged/
for file in /tmp/damaged/[ln]*; do
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
for arch in x86_64 aarch64; do
	check "and the linker for $arch" grep -qE "^linker    $arch .*LLD [0-9.]+$" "$made_with"
	check "and what made nvpm-bin for $arch" grep -qE \
		"^nvpm-bin  $arch rustc 1\.[0-9.]+ .*; cargo 1\.[0-9.]+ .*; linker .*gcc.* ld .*; library libc-2.31; xz [0-9.]+$" "$made_with"
done
check "and nothing of the machine that made it" fails grep -e / -e "$(uname -n)" "$made_with"

# in_pod ARGUMENT...: runs nvpm, as one file, in an environment like a container. No package of ours
# is installed, /sys is read-only, libcuda and devices are missing, and the user is nobody.
single=/packages/nvpm-$version-$(uname -m)
in_pod() {
	unshare --mount bash -c 'mount -t sysfs -o ro sysfs /sys && cd / && exec setpriv --reuid 65534 --regid 65534 --clear-groups \
		env -i PATH=/usr/bin:/bin "$@"' in_pod "$single" "$@"
}
check "nvpm is one file" saying in_pod --version
commit=$(sed -n 's/^commit *//p' "$made_with" | head -c 12)
check "of this version and commit" [ "$(in_pod --version)" = "nvpm $version (commit $commit)" ]
check "it says what is missing" grep -q "cannot be registered for RDMA here: there is no NVIDIA GPU" <(in_pod)
check "and what needs attention" grep -q '^  !!  GPUs, number: 0' <(in_pod status)
code=0
in_pod check >/tmp/said || code=$?
check "and a monitor" [ "$code $(cut -d' ' -f2 /tmp/said)" = "3 UNKNOWN" ]
code=0
in_pod selftest >/tmp/said 2>&1 || code=$?
check "selftest says what it lacks" [ "$code $(grep -c 'no libcuda' /tmp/said)" = "3 1" ]
check "a report can be made" grep -q '^==== versions.txt' <(in_pod report 2>/tmp/err)
check "without a panic" fails grep -r panicked /tmp/said /tmp/err
(umask 022 && cd /tmp && install -d -m 777 /tmp/reports)
check "and written" saying in_pod report --write /tmp/reports/one.tar.gz
check "once" fails in_pod report --write /tmp/reports/one.tar.gz

# nvpm run looks for the library next to the file with nvpm. The library must have the name that it
# has in the release.
mkdir /tmp/pod
cp "$single" "$library-$(uname -m).so" /tmp/pod/
check "nvpm run takes the library that lies beside it" [ "$(on_dma_buf "/tmp/pod/${single##*/}" run printenv LD_PRELOAD)" = \
	"/tmp/pod/libnvpm_preload-$version-$(uname -m).so" ]

# Here a release is made from a checkout on a machine whose /tmp is mounted noexec, and which has no
# linker for the other processor.
cd "/tmp/there/$name" || exit
rm -rf build/prebuilt preload/prebuilt nvpm/prebuilt
git init --quiet
git -c user.name=lab -c user.email=lab@localhost add .
git -c user.name=lab -c user.email=lab@localhost commit --quiet -m "$version"
mkdir /tmp/noexec
mount -t tmpfs -o noexec tmpfs /tmp/noexec
export TMPDIR=/tmp/noexec
without /usr/bin/ld.lld
told "a release can be made" "Not made: libnvpm_preload-$version-aarch64.so (there is no linker for aarch64 here (package lld, or binutils-aarch64-linux-gnu))." \
	env OUT=/tmp/made ./build_release.sh --without-rpm
back
check "with the library that can be linked" [ "$(cd /tmp/made && echo *.so)" = "libnvpm_preload-$version-x86_64.so" ]
check "and what it was linked with" grep -qE '^linker    x86_64 GNU ld .*[0-9.]+$' /tmp/made/*.made-with
check "and what was not" grep -qx 'linker    aarch64 none' /tmp/made/*.made-with
check "the checksums are of it, too" saying env -C /tmp/made sha256sum -c SHA256SUMS
examined "/tmp/made/libnvpm_preload-$version-x86_64.so" x86_64
quiet "/tmp/made/libnvpm_preload-$version-x86_64.so"
for arch in x86_64 aarch64; do
	for file in "$name"/{build,preload}/prebuilt/"$arch.S"; do
		check "with the same Rust: $file" cmp <(tar xzOf /tmp/made/*.orig.tar.gz "$file") <(tar xzOf "$tarball" "$file")
	done
done
refused "where none is to be run at all, it is said" "no program can be run in /tmp/noexec, nor in /tmp/noexec/out: are they mounted noexec?" \
	env OUT=/tmp/noexec/out ./build_release.sh
check "and what to do" says "Choose another directory to work in with TMPDIR="
unset TMPDIR
check "nothing is left behind" [ -z "$(find /tmp/noexec /tmp/made -name 'nv.*')" ]
umount /tmp/noexec

# Without the tools of one processor, nothing is made, unless somebody wants a release without its program.
without /opt/nvpm-programs/aarch64
refused "without a compiler for arm64 no release is made" "nvpm-bin cannot be compiled for aarch64: " \
	env OUT=/tmp/one ./build_release.sh --without-rpm
check "and it is said how one is" says "or choose --without-program=aarch64 for a release without it."
check "nothing was made" [ ! -e /tmp/one ]
told "so one is" "Not made: nvpm-$version-aarch64." env OUT=/tmp/one ./build_release.sh --without-rpm --without-program=aarch64
# The commit of this release is another one.
without_commit() { sed 's/nvpm-commit:[0-9a-f]*//' "$1"; }
check "with the other one" cmp <(without_commit "/tmp/one/nvpm-$version-x86_64") <(without_commit "/packages/nvpm-$version-x86_64")
check "and the record says so" grep -qx 'nvpm-bin  aarch64 none' /tmp/one/*.made-with
back

# With --without-rust no Rust is compiled, even on a machine that has it.
check "without Rust by choice" saying env OUT=/tmp/chosen ./build_release.sh --without-rust
check "no Rust is compiled" fails says "Compiling the Rust"
check "and it is said why it lacks" says "they build only on machines with Rust. --without-rust was chosen."

# Here a release is made on a machine without Rust.
without "${rust[@]}"
refused "without Rust no source packages are made" "rustc 1.78 or later with the source of its library is missing (packages rustc and rust-src" \
	env OUT=/tmp/lacking ./build_release.sh
check "and what the packages would lack" says "The packages would lack build/prebuilt/x86_64.S preload/prebuilt/x86_64.S build/prebuilt/aarch64.S preload/prebuilt/aarch64.S."
check "and what else can be done" says "or choose --without-rust for packages that build only on machines with Rust."
check "nothing was made" [ -z "$(ls /tmp/lacking)" ]
told "who wants them has them made" "they build only on machines with Rust. --without-rust was chosen." \
	env OUT=/tmp/lacking ./build_release.sh --without-rust
check "and what" says "These packages lack build/prebuilt/x86_64.S preload/prebuilt/x86_64.S build/prebuilt/aarch64.S preload/prebuilt/aarch64.S: they build only on machines with Rust."
check "and that there is no program" says "Not made: nvpm-$version-x86_64. So packages for x86_64 have no nvpm, unless there is a cargo where they are built."
check "and that there is no library" says "Not made: libnvpm_preload-$version-x86_64.so (it is made of Rust), libnvpm_preload-$version-aarch64.so (it is made of Rust)."
check "they do lack it" fails grep prebuilt/ <(tar tzf /tmp/lacking/*.orig.tar.gz)
check "the same as where there is Rust" cmp /tmp/lacking/SHA256SUMS /tmp/chosen/SHA256SUMS

# Settings of the user and of the site must change no byte, and put in no name. Changes that are not
# committed are not in the release, and are named.
mkdir -p /tmp/user /etc/rpm
printf '%%packager Joe Doe <joe@corp.example>\n%%vendor Corp\n%%distribution Corp\n%%bugurl corp\n%%_source_payload w3.zstdio\n%%_source_filedigest_algorithm 1\n' >/tmp/user/.rpmmacros
cp /tmp/user/.rpmmacros /etc/rpm/macros
printf '*.md export-ignore\n*.sh text eol=crlf\n' | tee /etc/gitattributes >/tmp/user/attributes
mkdir -p /tmp/user/template/hooks
printf '#!/bin/sh\necho hook >>README.md\n' | tee /tmp/user/template/hooks/post-checkout >/tmp/user/post-checkout
chmod +x /tmp/user/template/hooks/post-checkout /tmp/user/post-checkout
cat >/tmp/user/.gitconfig <<'CONFIG'
[core]
	autocrlf = true
	attributesFile = /tmp/user/attributes
	hooksPath = /tmp/user
	abbrev = 40
[init]
	templateDir = /tmp/user/template
[tar]
	umask = user
[log]
	date = relative
CONFIG
echo '// edited' >>src/main.rs
echo new >'a new file'
told "with another user's settings" 'Not in the release, because it is not committed: src/main.rs, "a new file"' \
	env HOME=/tmp/user OUT=/tmp/settings bash -c 'umask 077 && ./build_release.sh --without-rust'
check "the same bytes are made" cmp /tmp/lacking/SHA256SUMS /tmp/settings/SHA256SUMS
# An alias or a hook of git runs its commands with settings in the environment.
check "with settings in the environment" saying env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.autocrlf GIT_CONFIG_VALUE_0=true \
	GIT_WORK_TREE=/tmp/user GIT_NAMESPACE=user GIT_INDEX_FILE=/tmp/user/index OUT=/tmp/environment ./build_release.sh --without-rust
check "too" cmp /tmp/lacking/SHA256SUMS /tmp/environment/SHA256SUMS
check "by nobody" [ "$(rpm -qp --qf '%{PACKAGER} %{VENDOR} %{DISTRIBUTION} %{BUGURL} %{BUILDHOST}' /tmp/settings/*.src.rpm)" = "(none) (none) (none) (none) localhost" ]
check "this is said twice, above all lines and below" [ "$(grep -c '^Not in the release' "$said")" = 2 ]
rm -r /etc/rpm/macros /etc/gitattributes 'a new file'
git checkout --quiet src
check "without changes nothing is said" saying env OUT=/tmp/settings ./build_release.sh --without-rust
check "of any" fails says "Not in the release"
# git looks at the changes in another user's checkout only if the directory itself is named safe. For
# the clone, its .git suffices.
checkout=$(pwd)
owner=$(stat -c %u .)
printf '[safe]\n\tdirectory = %s/.git\n' "$checkout" >/tmp/user/.gitconfig
chown -R 4711 .
echo '// edited' >>src/main.rs
told "in another user's checkout" "whether there are any is unknown, because git says: fatal: detected dubious ownership in repository at '$checkout'" \
	env HOME=/tmp/user OUT=/tmp/foreign ./build_release.sh --without-rust
chown -R "$owner" .
git checkout --quiet src
mkdir /tmp/unpacked
tar xzf "$tarball" -C /tmp/unpacked
refused "an unpacked release says what it is" "/tmp/unpacked/$name is no git repository. If it is an unpacked release, there is nothing to be done: README.md says how packages are built from it" \
	env OUT=/tmp/none "/tmp/unpacked/$name/build_release.sh" --without-rust
check "and nothing is made" [ ! -e /tmp/none ]
rm -r /tmp/unpacked

# The bytes of the packages must not depend on the running kernel, so uname prints another kernel
# here.
mkdir /tmp/another
printf '#!/bin/sh\n[ "$*" = -r ] && echo 9.9-other || exec /usr/bin/uname "$@"\n' >/tmp/another/uname
chmod +x /tmp/another/uname
check "it is made beside another kernel" saying env PATH="/tmp/another:$PATH" OUT=/tmp/elsewhere ./build_release.sh --without-rust
check "of the same bytes" cmp /tmp/lacking/*.src.rpm /tmp/elsewhere/*.src.rpm
# If a tool is missing, build_release.sh makes nothing, and names the tool's package.
mv /usr/bin/rpmbuild /tmp/
refused "without rpmbuild no source packages are made" "rpmbuild is missing (package rpm). Install it, or choose --without-rpm" \
	env OUT=/tmp/half ./build_release.sh --without-rust
check "nothing was made" [ ! -e /tmp/half ]
check "who wants the tarball alone has it made" saying env OUT=/tmp/half ./build_release.sh --without-rust --without-rpm
check "and it is the only package" [ "$(cd /tmp/half && echo *)" = \
	"SHA256SUMS nvidia-peer-memory_$version.made-with nvidia-peer-memory_$version.orig.tar.gz" ]
check "made with neither, and nothing was linked" [ "$(grep -c ' none$' /tmp/half/*.made-with)" = 6 ]
check "the checksums are of it" saying env -C /tmp/half sha256sum -c SHA256SUMS
mv /tmp/rpmbuild /usr/bin/

# README.md says by which commands packages are made. The test runs these commands, but with another
# directory.
# shellcheck disable=SC2088 # the literal text of README.md
sed -n '\,^    cd ~/nv_peer_mem-release,,/^    dpkg-buildpackage/s,^    ,,p' "/tmp/there/$name/README.md" |
	sed "s,~/nv_peer_mem-release,/tmp/lacking," >/tmp/as_written
check "README.md says how packages are made" test "$(wc -l </tmp/as_written)" = 3
lacking="without build/prebuilt/$(uname -m).S it builds only on machines with Rust."
told "packages are made of them so" "nvidia-peer-memory-dkms: $lacking" sh -e /tmp/as_written
check "but none with the library" says "So there is no package nvidia-peer-memory-preload."
check "and why not" says "nvpm_preload: preload/prebuilt/$(uname -m).S, which a release contains, is missing; and to make it, rustc"
check "nor nvpm-bin" says "So nvidia-peer-memory has no nvpm."
check "and why not" says "nvpm-bin: nvpm/prebuilt/$(uname -m), which a release contains, is missing; and to compile it, cargo and rustc 1.85 or later are missing"
check "the others are there" [ "$(cd /tmp/lacking && echo *.deb)" = \
	"nvidia-peer-memory-dkms_$version-1_all.deb nvidia-peer-memory_$version-1_$(dpkg --print-architecture).deb" ]
check "and the one says so" grep -q "this package was made without the program" <(dpkg-deb --fsys-tarfile /tmp/lacking/nvidia-peer-memory_*.deb | tar -xO ./usr/lib/nvidia-peer-memory/nvpm-bin)
rm -r /tmp/lacking/*.deb /tmp/lacking/*.buildinfo /tmp/lacking/*.changes
# A patched release must make no packages without Rust, because no machine could build the module
# from them.
rm -rf /tmp/patched
mkdir /tmp/patched
tar xzf "$tarball" -C /tmp/patched
echo '// patched' >>"/tmp/patched/$name/src/extents.rs"
refused "a patched release makes no packages without Rust" "build/prebuilt/x86_64.S was compiled from other sources than these, and was not made anew here" \
	env -C "/tmp/patched/$name" dpkg-buildpackage -us -uc -b
rm -r /tmp/patched
told "rpm packages, too" "nvidia-peer-memory-dkms: $lacking" \
	rpmbuild --rebuild --nodeps --without kmod --define "_topdir /tmp/rpm" /tmp/lacking/*.src.rpm

# Another user may have put a link into the directory for the results. build_release.sh must not
# follow the link.
mkdir /tmp/planted
: >/tmp/kept
ln -s /tmp/kept "/tmp/planted/nvidia-peer-memory_$version.orig.tar.gz"
refused "a link where the tarball belongs" "is a symbolic link, which this does not follow: remove it, or choose another directory with OUT=." \
	env OUT=/tmp/planted ./build_release.sh --without-rust
check "what it leads to is as it was" test ! -s /tmp/kept
check "and nothing was delivered" test -z "$(find /tmp/planted -type f)"

# A release replaces an earlier release of the same user.
rm /tmp/planted/*
echo earlier >"/tmp/planted/nvidia-peer-memory_$version.orig.tar.gz"
check "an earlier tarball is replaced" saying env OUT=/tmp/planted ./build_release.sh --without-rust
for file in /tmp/planted/*; do
	check "whole, and later the same bytes: ${file##*/}" cmp "/tmp/lacking/${file##*/}" "$file"
done
check "nothing else is left there" [ "$(find /tmp/planted -type f | wc -l)" = 4 ]
mkdir "/tmp/named" "/tmp/named/nvidia-peer-memory_$version.orig.tar.gz"
check "a directory of that name is refused" fails saying env OUT=/tmp/named ./build_release.sh --without-rust
check "and is left empty" [ -z "$(find /tmp/named -type f)" ]
