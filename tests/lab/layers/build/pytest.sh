# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# Installs the tools that test and check programs of Python, shells whose completion is tested, the
# tools of Prometheus, which read nvpm's metrics, and Kubernetes' schemas, by which manifests are
# checked. Debian has no ruff. Its mypy is older than the mypy with which the annotations were checked.
set -euo pipefail
apt-get update
apt-get install -y --no-install-recommends fish musl-tools prometheus prometheus-node-exporter \
	python3-hypothesis python3-pip python3-pytest zsh
[ ! -e /in/ca-certificates.crt ] || export PIP_CERT=/in/ca-certificates.crt
pip install --break-system-packages --no-cache-dir --root-user-action=ignore ruff==0.17.6 mypy==2.4.1 \
	kubernetes-validate==1.37.0 types-PyYAML
