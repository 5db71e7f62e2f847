# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# A release is unpacked, and nothing is installed. The lab makes its packages without the tests, so
# that a change of a test need not make them again. The tests for hardware are added here, as they
# would be in a release, which has all files of the checkout.
tar -xzf /in/packages/nvidia-peer-memory_*.orig.tar.gz -C /opt
release=$(echo /opt/nvidia-peer-memory-*)
mkdir -p "$release/tests/hardware"
cp -a /in/*.py /in/run /in/client "$release/tests/hardware/"
chown -R root:root "$release"
chmod -R go-w "$release"
