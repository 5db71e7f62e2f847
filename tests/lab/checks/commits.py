# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Checks the form of commit messages: the subject is `part: change`, of at most 72 columns, and the
body says the problem, the reason and the test.

    commits.py FILE    the message in FILE, for .githooks/commit-msg
    commits.py         all commits of this checkout since the rule exists
"""

import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
# The last commit that was made before the rule existed.
BEFORE = "82b7a1da7eec39043be302b31f3bf6ee4148bde0"

SUBJECT = re.compile(r"[\w./(),+ -]+: \S.*")
# The beginnings of subjects that git itself writes, which need not have the form.
AUTOMATIC = re.compile(r"Merge |Revert |fixup! |squash! ")
WIDTH = 72


def faults(message: str) -> list[str]:
    """Returns a sentence about each mistake in a message."""
    lines = [line for line in message.rstrip("\n").split("\n") if not line.startswith("#")]
    subject, body = lines[0] if lines else "", "\n".join(lines[1:]).strip()
    if AUTOMATIC.match(subject):
        return []
    found = []
    if len(subject) > WIDTH:
        found.append(f"the subject has {len(subject)} columns, and not at most {WIDTH}")
    if not SUBJECT.fullmatch(subject):
        found.append("the subject is not `part: change`")
    if subject.endswith(".") or "; " in subject:
        found.append("the subject ends with a period, or names two changes")
    if len(lines) > 1 and lines[1]:
        found.append("the second line is not empty")
    if not body and "typo" not in subject:
        found.append("there is no body that says the problem, the reason and the test")
    if any(len(line) > WIDTH + 8 and " " in line.strip() for line in lines[1:]):
        found.append(f"a line of the body is much longer than {WIDTH} columns")
    return found


def git(*words: str) -> str:
    command = ["git", "-C", str(TOP), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_history() -> int:
    """Checks the commits after BEFORE. In a shallow clone without BEFORE, checks all commits."""
    known = subprocess.run(
        ["git", "-C", str(TOP), "cat-file", "-e", BEFORE], capture_output=True, check=False
    )
    commits = git("log", "--format=%H", "HEAD" if known.returncode else f"{BEFORE}..HEAD").split()
    if known.returncode:
        commits = commits[:1]
    wrong = 0
    for commit in commits:
        for fault in faults(git("log", "-1", "--format=%B", commit)):
            print(f"{git('log', '-1', '--format=%h %s', commit).strip()}: {fault}")
            wrong += 1
    print(f"{len(commits)} commits, {wrong} faults")
    return 1 if wrong or not commits else 0


def check_file(name: str) -> int:
    found = faults(Path(name).read_text(encoding="utf-8"))
    for fault in found:
        print(f"commit message: {fault} (CONTRIBUTING.md, Commits)", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(check_file(sys.argv[1]) if sys.argv[1:] else check_history())
