# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the program, and prints a line `ok` for each test, because the lab counts these lines."""

import sys
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "explain"))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        terminalreporter.write_line(f"ok {report.nodeid.partition('::')[2]}")
