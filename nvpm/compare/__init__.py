# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm compare: says which of many nodes differ from the others, and in which fact."""
