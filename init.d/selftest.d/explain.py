# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lines of `nvpm status` that explain a failure."""
import json
import os
import subprocess

STATUS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "status")

# Neither what programs look for nor what the next boot does has a part in whether memory
# can be registered now.
ELSEWHERE = (("detection", None), ("module", "on boot"))


class Status:
    """Asked once, when something has failed. Each line is given once: what is wrong with
    the module is wrong for every pair."""

    def __init__(self, gpus, devices):
        self.names = set(gpus) | set(devices)
        self.facts = None

    def explain(self, *names):
        """Of what is bad those about the module, or about one of these names; where nothing
        is, of what is not good."""
        if self.facts is None:
            self.facts = ask()
        others = self.names - set(names)
        found = [fact for fact in self.facts if not elsewhere(fact) and not others & words(fact)]
        for verdict in ("bad", "warn"):
            these = [fact for fact in found if fact["verdict"] == verdict]
            if these:
                fresh = [fact for fact in these if not fact.get("said")]
                for fact in fresh:
                    fact["said"] = True
                return fresh
        return []


def elsewhere(fact):
    return any(fact["section"] == section and name in (None, fact["name"]) for section, name in ELSEWHERE)


def words(fact):
    return set((fact["section"] + " " + fact["name"]).split())


def ask():
    """Facts that are bad or a warning."""
    try:
        said = subprocess.run([STATUS, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout
        facts = json.loads(said.decode(errors="replace"))["facts"]
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return [{"section": "status", "name": "status", "verdict": "bad", "value": "does not answer",
                 "advice": STATUS + " says why."}]
    return [fact for fact in facts if fact["verdict"] in ("bad", "warn")]
