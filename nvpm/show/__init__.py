# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints facts: for people, as JSON, as metrics, and for monitoring."""
