# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# For the layers of tools that are compiled with cargo: Debian's crates in place
# of a crate registry.

# install_packages PACKAGE...
install_packages() {
	apt-get update
	apt-get install --yes --no-install-recommends "$@"
	rm -rf /var/cache/apt/archives/*.deb
}

# use_debian_crates DIR: cargo takes Debian's, and compiles in DIR.
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

# forget_stub DIR PACKAGE: what stood for PACKAGE in DIR while its dependencies were
# compiled. Cargo compares times: it would take that, which has no tests, for
# a PACKAGE whose files are older.
forget_stub() { rm -rf "$1"/*/.fingerprint/"$2"-*; }
