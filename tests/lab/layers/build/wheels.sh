# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs other projects' programs that come as wheels, and Debian's libraries that the wheels do
# not contain.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends libcurl4t64 libnuma1 python3-numpy python3-pip
rm -rf /var/cache/apt/archives/*.deb
[ ! -e /in/ca-certificates.crt ] || export PIP_CERT=/in/ca-certificates.crt
pip install --break-system-packages --no-cache-dir --root-user-action=ignore --no-deps --require-hashes \
	--requirement /in/requirements.txt

# Debian 12 has the last Python for which these wheels are made. Debian 13 cannot install it, so its
# files are put into a directory of their own.
old=/opt/python3.11
sed -n 's/ trixie \(.*\)/ bookworm \1/p' /etc/apt/sources.list >/etc/apt/sources.list.d/old.list
apt-get update
mkdir /tmp/old
(cd /tmp/old && apt-get download libpython3.11-minimal libpython3.11-stdlib python3.11-minimal)
for package in /tmp/old/*.deb; do dpkg -x "$package" "$old"; done
rm -r /tmp/old /etc/apt/sources.list.d/old.list
pip install --target "$old/wheels" --python-version 3.11 --only-binary=:all: --no-cache-dir --root-user-action=ignore \
	--no-deps --require-hashes --requirement /in/requirements-3.11.txt
cat >/usr/local/bin/python3.11 <<EOF
#!/bin/sh
PYTHONDONTWRITEBYTECODE=1 PYTHONHOME=$old/usr PYTHONPATH=$old/wheels exec $old/usr/bin/python3.11 "\$@"
EOF
chmod 755 /usr/local/bin/python3.11
