# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lines of `nvpm status` that explain a failure."""
from ..fact import BAD, WARN, bad

# Neither what programs look for nor what the next boot does has a part in whether memory can be registered now.
ELSEWHERE = (("detection", None), ("module", "on boot"))


def _facts(machine):
    try:
        from ..report import report
        return report(machine).facts
    except Exception:  # the failure is to be told, whatever is wrong with this
        return [bad("status", "status", "does not answer", "nvpm status says why.")]


class Reasons:
    """Status is asked once, when something has failed. Each line is given once: what is wrong with the module is wrong for
    every pair."""

    def __init__(self, machine, names):
        self.machine, self.names, self.facts, self.said = machine, set(names), None, set()

    def of(self, *names):
        """Of what is bad those about the module, or about one of these names; where nothing is, of what is not good."""
        if self.facts is None:
            self.facts = [fact for fact in _facts(self.machine) if not any(
                fact.section == section and name in (None, fact.name) for section, name in ELSEWHERE)]
        others = self.names - set(names)
        for verdict in (BAD, WARN):
            found = [fact for fact in self.facts if fact.verdict == verdict and not others & set((fact.section + " " + fact.name).split())]
            if found:
                fresh = [fact for fact in found if fact not in self.said]
                self.said.update(fresh)
                return fresh
        return []
