# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Keeps the module on a node of a cluster (docs/kubernetes.md)."""
