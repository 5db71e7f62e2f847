# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Functions for layers in which cargo compiles tools, with Debian's crates in place of a crate
# registry.

# install_packages PACKAGE...: installs Debian's packages.
install_packages() {
	apt-get update
	apt-get install --yes --no-install-recommends "$@"
	rm -rf /var/cache/apt/archives/*.deb
}

# use_debian_crates DIR: makes cargo take Debian's crates, and compile in DIR.
use_debian_crates() {
	mkdir -p /root/.cargo
	cat >/root/.cargo/config.toml <<CONFIG
[source.crates-io]
replace-with = "debian"

[source.debian]
directory = "/usr/share/cargo/registry"

[net]
offline = true

[build]
target-dir = "$1"
CONFIG
}

# forget_stub DIR PACKAGE: removes the results for the stub of PACKAGE, with which its dependencies
# were compiled in DIR. Cargo compares times, and would take the stub for a PACKAGE with older
# files.
forget_stub() { rm -rf "$1"/*/.fingerprint/"$2"-*; }
