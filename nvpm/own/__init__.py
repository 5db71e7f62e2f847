# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The messages of nv_peer_mem itself, in one file for each program that prints them."""
