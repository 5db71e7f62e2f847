# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Takes names and numbers that identify people, hosts, jobs and cards out of a text."""
