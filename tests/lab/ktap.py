# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a guest says over its serial port: KTAP, with a scenario's checks nested in its result.

    1..2
      ok 1 write, aligned
      # say: a line for the reader; # ask: a question to the host (guest.py)
      1..1
    ok 1 straight
"""

import re
from dataclasses import dataclass

RESULT = re.compile(r"(ok|not ok) (\d+) (.+)")
PLAN = re.compile(r"1\.\.(\d+)")


@dataclass
class Result:
    """What one scenario, system, test or check came to: passed, if nothing failed."""

    name: str
    checks: int
    failures: list


class Ktap:
    """The results of the scenarios NAMES, line by line."""

    def __init__(self, names):
        self.names, self.results = names, []
        self.begin()

    def begin(self):
        self.checks, self.failures, self.planned = 0, [], None

    def hear(self, line):
        """Takes a line; what follows `# ` is returned as it is."""
        nested, text = line.startswith("  "), line.strip()
        if text.startswith("# "):
            return text[2:]
        if plan := PLAN.fullmatch(text):
            if nested:
                self.planned = int(plan[1])
            elif int(plan[1]) != len(self.names):
                self.failures.append(f"the guest has planned {plan[1]} scenarios of {len(self.names)}")
        elif result := RESULT.fullmatch(text):
            (self.check if nested else self.end)(*result.groups())
        elif text not in ("", "KTAP version 1"):
            self.failures.append(f"a line that is none of KTAP: {text}")
        return None

    def check(self, word, number, text):
        self.checks += 1
        if int(number) != self.checks:
            self.failures.append(f"check {number} where {self.checks} was expected: a line was lost")
        if word != "ok":
            self.failures.append(text)
        elif "# SKIP" in text:
            self.failures.append(f"skipped: {text}")

    def end(self, word, number, name):
        """A scenario's own result."""
        expected = self.names[len(self.results)] if len(self.results) < len(self.names) else "nothing more"
        if name != expected or int(number) != len(self.results) + 1:
            self.failures.append(f"the result of {name} where that of {expected} was expected")
        if self.planned != self.checks:
            self.failures.append(f"the guest has counted {self.planned} checks, {self.checks} were heard")
        if not self.checks:
            self.failures.append("no check was made")
        if word != "ok" and not self.failures:
            self.failures.append("the scenario failed, and did not say at what")
        self.results.append(Result(expected, self.checks, self.failures))
        self.begin()

    def over(self, why):
        """Nothing more will be heard: what has no result has failed. Returns those."""
        heard = len(self.results)
        for name in self.names[heard:]:
            self.results.append(Result(name, self.checks, self.failures + [why]))
            self.begin()
            why = "not reached, for the guest was gone"
        return self.results[heard:]

    @property
    def complete(self):
        return len(self.results) >= len(self.names)


def main():
    """That each way to fail does fail: what guests say, and which scenarios pass."""
    one = ["  KTAP version 1", "  ok 1 x", "  1..1", "ok 1 a"]
    two = [line.replace("ok 1 a", "ok 2 b") for line in one]
    for text, passed, lines in (
        ("all is well", "ab", one + two),
        ("a check fails", "b", ["  not ok 1 x"] + one[2:] + two),
        ("the scenario fails at no check", "b", one[:3] + ["not ok 1 a"] + two),
        ("a check is skipped", "b", ["  ok 1 x # SKIP no device"] + one[2:] + two),
        ("a line is lost", "b", ["  ok 2 x", "  1..2", "ok 1 a"] + two),
        ("the last line is lost", "b", ["  ok 1 x", "  1..2", "ok 1 a"] + two),
        ("a line is heard that nobody counted", "b", ["  ok 1 x"] + ["  ok 2 x"] + one[2:] + two),
        ("no plan", "b", ["  ok 1 x", "ok 1 a"] + two),
        ("no check", "b", ["  1..0", "ok 1 a"] + two),
        ("lines of something else", "b", one[:2] + ["  x"] + one[2:] + two),
        ("the guest goes in the middle", "", one[:2]),
        ("the guest goes between two", "a", one),
        ("in another order", "", two + one),
        ("another number of scenarios", "b", ["1..3"] + one + two),
    ):
        guest = Ktap(["a", "b"])
        for line in lines:
            guest.hear(line)
        guest.over("the guest is gone")
        got = "".join(result.name for result in guest.results if not result.failures)
        assert got == passed, f"{text}: '{got}' passed instead of '{passed}'"
        print("ok", text)


if __name__ == "__main__":
    main()
