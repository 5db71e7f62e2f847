# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a line `ok` for each command that was run on a machine, because the lab counts these
lines."""

import sys

import pytest
from _pytest.terminal import TerminalReporter
from installed import SERVICE

# All tests import the nvpm in SERVICE. Python must leave no compiled files there.
sys.path.insert(0, str(SERVICE))
sys.dont_write_bytecode = True


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a second look at a machine that is made of files take no time."""
    from nvpm.facts import use

    monkeypatch.setattr(use, "PATIENCE", 0.0)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        for _ in range(dict(report.user_properties).get("looks", 1)):
            terminalreporter.write_line(f"ok {report.nodeid.partition('::')[2]}")
