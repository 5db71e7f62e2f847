# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The messages of other programs, in one file for each section of docs/messages.md."""
