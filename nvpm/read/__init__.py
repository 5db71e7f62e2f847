# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads this node: files of sysfs and proc, devices, configuration. Judges nothing."""
