# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the packages of this checkout in /packages, as the README says, and those of an older
# version, to upgrade from, in /packages/old.
set -euo pipefail
kver=$1
export NVPM_RUST_CORE=/opt/rust-core NVPM_PROGRAMS=/opt/nvpm-programs

# make_repository: makes a repository of the release, with an older version in the branch "old".
make_repository() {
	mkdir /tmp/repository
	cp -a /in/. /tmp/repository/
	cd /tmp/repository
	rm packages.sh
	chown -R root:root .
	version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)
	git init --quiet --initial-branch=main
	git config user.name lab
	git config user.email lab@localhost
	git add .
	git commit --quiet -m "$version"
	git checkout --quiet -b old
	sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"1.9.0\"/" dkms.conf
	sed -i "1s/(.*)/(1.9.0-1)/" debian/changelog
	# The last release's package had no program, and was for all processors.
	sed -i "0,/^Architecture: .*/s//Architecture: all/" debian/control
	git commit --quiet -a -m 1.9.0
	git checkout --quiet main
}

# source_packages OUT [BRANCH [OPTION]]: makes the source packages of BRANCH in OUT.
source_packages() { OUT=$1 GIT_BRANCH=${2-} /tmp/repository/build_release.sh "${@:3}"; }

# binary_packages OUT: builds binary packages from the source packages in OUT, and puts them into OUT.
binary_packages() {
	cd "$1"
	# The requirements are installed, but rpm knows no package of this system.
	CARGO=$rustc rpmbuild --rebuild --nodeps --define "_topdir /tmp/rpm" --define "kernel_version $kver" ./*.src.rpm
	mv /tmp/rpm/RPMS/*/*.rpm .
	rm -rf /tmp/rpm
	tar xzf ./*.orig.tar.gz
	(cd nvidia-peer-memory-*/ && RUSTC=$rustc dpkg-buildpackage -us -uc)
	rm -rf nvidia-peer-memory-*/
}

make_repository
source_packages /packages
rustc=
binary_packages /packages
# The older version is made as on a machine without Rust, because that is faster. It can be
# installed only if the kernel has its own crates.
rustc=/none
RUSTC=$rustc source_packages /packages/old old --without-rust
binary_packages /packages/old
ls -l /packages /packages/old
