# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs programs that run on two guests: Debian's Open MPI, which comes with UCX, the tools that
# collect the output of many machines (pdsh, clush, Ansible), and ssh, with
# which mpirun starts programs on other machines. All guests have the same keys, so they know each
# other.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends ansible-core clustershell libopenmpi-dev openmpi-bin openssh-client openssh-server pdsh
rm -rf /var/cache/apt/archives/*.deb
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
sed 's/^/* /' /etc/ssh/ssh_host_ed25519_key.pub >/root/.ssh/known_hosts

OMPI_CC=gcc-14 mpicc -std=gnu11 -O2 -Wall -Wextra -Werror -D_GNU_SOURCE -o /usr/local/bin/gpumpi /in/hosts/gpumpi.c
