# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the lines that a guest writes to its serial port. They are KTAP, in which the checks of a
scenario are nested in its result, and lines of the lab, which have the form of KTAP's comments.

    1..2
      ok 1 write, aligned
      # say: a line for the reader; # ask: a question to the host (guest.py)
      1..1
    ok 1 straight
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

RESULT = re.compile(r"(ok|not ok) (\d+) (.+)")
PLAN = re.compile(r"1\.\.(\d+)")


@dataclass
class Result:
    """The result of a scenario, system, test or check, which has passed if there are no
    failures."""

    name: str
    checks: int
    failures: list[str]


class Ktap:
    """Collects the results of the scenarios NAMES, line by line."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.results: list[Result] = []
        self.begin()

    def begin(self) -> None:
        """Begins the next scenario: forgets the results and the plan of the scenario before."""
        self.checks = 0
        self.failures: list[str] = []
        self.planned: int | None = None

    def hear(self, line: str) -> str | None:
        """Processes a line. Returns the text of the line if it begins with `# `."""
        nested, text = line.startswith("  "), line.strip()
        if text.startswith("# "):
            return text[2:]
        if plan := PLAN.fullmatch(text):
            if nested:
                self.planned = int(plan[1])
            elif int(plan[1]) != len(self.names):
                number = len(self.names)
                self.failures.append(f"the guest has planned {plan[1]} scenarios of {number}")
        elif result := RESULT.fullmatch(text):
            take = self.check if nested else self.end
            take(*result.groups())
        elif text not in ("", "KTAP version 1"):
            self.failures.append(f"a line that is none of KTAP: {text}")
        return None

    def check(self, word: str, number: str, text: str) -> None:
        self.checks += 1
        if int(number) != self.checks:
            self.failures.append(
                f"check {number} where {self.checks} was expected: a line was lost"
            )
        if word != "ok":
            self.failures.append(text)
        elif "# SKIP" in text:
            self.failures.append(f"skipped: {text}")

    def end(self, word: str, number: str, name: str) -> None:
        """Processes the line with the result of a scenario."""
        expected = "nothing more" if self.complete else self.names[len(self.results)]
        if name != expected or int(number) != len(self.results) + 1:
            self.failures.append(f"the result of {name} where that of {expected} was expected")
        if self.planned != self.checks:
            counted = f"the guest has counted {self.planned} checks"
            self.failures.append(f"{counted}, {self.checks} were heard")
        if not self.checks:
            self.failures.append("no check was made")
        if word != "ok" and not self.failures:
            self.failures.append("the scenario failed, and did not say at what")
        self.results.append(Result(expected, self.checks, self.failures))
        self.begin()

    def over(self, why: str) -> list[Result]:
        """Ends the results. Adds a failure for each scenario without a result, and returns these
        failures."""
        heard = len(self.results)
        for name in self.names[heard:]:
            self.results.append(Result(name, self.checks, [*self.failures, why]))
            self.begin()
            why = "not reached, for the guest was gone"
        return self.results[heard:]

    @property
    def complete(self) -> bool:
        return len(self.results) >= len(self.names)


# The lines of two scenarios, a and b, that pass.
A = ["  KTAP version 1", "  ok 1 x", "  1..1", "ok 1 a"]
B = ["  KTAP version 1", "  ok 1 x", "  1..1", "ok 2 b"]

# Lines that a guest may write, and the scenarios that must pass with these lines.
CASES = (
    ("all is well", "ab", [*A, *B]),
    ("a check fails", "b", ["  not ok 1 x", *A[2:], *B]),
    ("the scenario fails at no check", "b", [*A[:3], "not ok 1 a", *B]),
    ("a check is skipped", "b", ["  ok 1 x # SKIP no device", *A[2:], *B]),
    ("a line is lost", "b", ["  ok 2 x", "  1..2", "ok 1 a", *B]),
    ("the last line is lost", "b", ["  ok 1 x", "  1..2", "ok 1 a", *B]),
    ("a line is heard that nobody counted", "b", ["  ok 1 x", "  ok 2 x", *A[2:], *B]),
    ("no plan", "b", ["  ok 1 x", "ok 1 a", *B]),
    ("no check", "b", ["  1..0", "ok 1 a", *B]),
    ("lines of something else", "b", [*A[:2], "  x", *A[2:], *B]),
    ("the guest goes in the middle", "", A[:2]),
    ("the guest goes between two", "a", A),
    ("in another order", "", [*B, *A]),
    ("another number of scenarios", "b", ["1..3", *A, *B]),
)


def main() -> None:
    """Checks that each way in which a guest can fail is reported as a failure."""
    for text, passed, lines in CASES:
        guest = Ktap(["a", "b"])
        for line in lines:
            guest.hear(line)
        guest.over("the guest is gone")
        got = "".join(result.name for result in guest.results if not result.failures)
        assert got == passed, f"{text}: '{got}' passed instead of '{passed}'"
        print("ok", text)


if __name__ == "__main__":
    main()
