# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The option parser that every command uses."""

import argparse
from typing import Any, Iterable, List, NoReturn, Optional, Tuple

from .read.machine import Machine


class Formatter(argparse.HelpFormatter):
    """Begins the help with "Usage" in place of argparse's "usage", because `nvpm help` does so,
    too."""

    def add_usage(
        self,
        usage: Optional[str],
        actions: Iterable[argparse.Action],
        groups: Iterable[Any],
        prefix: Optional[str] = None,
    ) -> None:
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class Parser(argparse.ArgumentParser):
    """Reads the options of one command. CODES are two exit codes: the code after --help, and the
    code after wrong options."""

    def __init__(
        self, name: str, description: str, epilog: str, codes: Tuple[int, int] = (0, 2)
    ) -> None:
        # No option can be cut short, because a later version may have two that begin alike.
        super().__init__(
            prog=f"nvpm {name}",
            description=description,
            epilog=epilog,
            formatter_class=Formatter,
            allow_abbrev=False,
        )
        self.codes = codes
        self.add_argument(
            "--debug",
            action="store_true",
            help="say on stderr which file or program told it what",
        )

    def exit(self, status: int = 0, message: Optional[str] = None) -> NoReturn:
        super().exit(self.codes[status != 0], message)

    def read(self, machine: Machine, words: List[str]) -> argparse.Namespace:
        options = self.parse_args(words)
        machine.debug = options.debug
        return options
