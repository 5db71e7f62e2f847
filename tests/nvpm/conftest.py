# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""For the lab, which counts lines that begin with `ok`: one for each look at a machine."""

import sys

import pytest
from _pytest.terminal import TerminalReporter
from installed import SERVICE

# All import this nvpm, and no other; and nothing is left there that a package would not have.
sys.path.insert(0, str(SERVICE))
sys.dont_write_bytecode = True


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        for _ in range(dict(report.user_properties).get("looks", 1)):
            terminalreporter.write_line(f"ok {report.nodeid.partition('::')[2]}")
