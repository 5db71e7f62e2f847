# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Makes the lab's root a whole system: systemd as init, dkms, rpm, and units of the lab. In an
# emulated guest, each unit and each udev rule takes a tenth of a second for each boot, so those
# that no scenario needs are turned off.
set -euo pipefail

apt-get update
apt-get install -y --no-install-recommends systemd systemd-sysv udev dkms python3 rpm
cp -a /in/units/. /etc/systemd/system/
systemctl enable openibd.service lab.service
systemctl set-default multi-user.target
systemd-machine-id-setup

cd /usr/lib/systemd/system
systemctl mask rdma-load-modules@.service modprobe@.service \
	systemd-{logind,user-sessions,binfmt,random-seed,sysctl,sysusers,update-done}.service \
	systemd-{remount-fs,udev-load-credentials,tmpfiles-setup,tmpfiles-setup-dev}.service \
	systemd-{tmpfiles-setup-dev-early,journal-flush,journal-catalog-update,hwdb-update}.service \
	systemd-{networkd,timesyncd,firstboot,machine-id-commit,pstore}.service kmod-static-nodes.service ldconfig.service \
	{dev-hugepages,dev-mqueue,run-lock,sys-kernel-tracing,sys-kernel-config}.mount \
	sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount \
	systemd-ask-password-{console,wall}.path getty.target \
	systemd-{creds,hostnamed,sysext,initctl,pcrextend,pcrlock}.socket timers.target

# Only the rules that make device nodes and load drivers stay.
cd /usr/lib/udev/rules.d
for rule in *; do
	case $rule in
	50-udev-default.rules | 80-drivers.rules | 99-systemd.rules) ;;
	*) ln -s /dev/null "/etc/udev/rules.d/$rule" ;;
	esac
done
# Only the generator that reads /etc/init.d stays, because generators run at each boot and each
# daemon-reload.
mkdir -p /etc/systemd/system-generators
cd /usr/lib/systemd/system-generators
for generator in *; do
	case $generator in
	systemd-sysv-generator) ;;
	*) ln -s /dev/null "/etc/systemd/system-generators/$generator" ;;
	esac
done
# QEMU's machine has these devices, but no scenario uses them.
printf 'blacklist %s\n' ahci i2c_i801 lpc_ich >/etc/modprobe.d/lab.conf

apt-get clean
rm -rf /var/log/*
