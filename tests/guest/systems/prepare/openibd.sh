# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The script of MLNX_OFED where administrators call it, and `systemctl reload`, which runs it.
cat >/etc/init.d/openibd <<'SCRIPT'
#!/bin/sh
exec /bin/bash /lab/systems/machine/openibd "$@"
SCRIPT
chmod 755 /etc/init.d/openibd
mkdir -p /etc/systemd/system/openibd.service.d
printf '[Service]\nExecReload=/etc/init.d/openibd restart\n' >/etc/systemd/system/openibd.service.d/reload.conf
