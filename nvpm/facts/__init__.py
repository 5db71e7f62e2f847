# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about this node, each with a verdict and advice."""
