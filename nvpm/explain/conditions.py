# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether the conditions of messages and cases hold (model.Conditions)."""

import operator
import re
from typing import Callable, Dict, FrozenSet, Tuple

from . import texts
from .errors import ERRORS
from .log_facts import LogFacts
from .signs import WORDS_OF_FACTS, WORDS_OF_PROGRAMS

ERROR, LINE, VARIABLE = "errno=", "line:", "var:"
COMPARISON = re.compile(r"([a-z_]+)(<=|>=|<|>|=)([\d.]+)")
Numbers = Tuple[int, ...]
OPERATORS: Dict[str, Tuple[Callable[[Numbers, Numbers], bool], str]] = {
    "<": (operator.lt, "before"),
    "<=": (operator.le, "up to"),
    ">": (operator.gt, "after"),
    ">=": (operator.ge, "from"),
    "=": (operator.eq, "of version"),
}


def is_of_line(condition: str) -> bool:
    """Returns whether the condition is about the line of the message alone."""
    return condition.startswith((ERROR, LINE))


def holds_in_line(condition: str, errors: FrozenSet[str], line: str) -> bool:
    """Returns whether a condition about the line holds. ERRORS are the errors in the line."""
    if condition.startswith(ERROR):
        return not errors.isdisjoint(condition[len(ERROR) :].split(","))
    return bool(texts.pattern(condition[len(LINE) :]).search(line))


def holds_in_log(condition: str, facts: LogFacts) -> bool:
    """Returns whether a condition about the whole log holds. If the log does not contain a version,
    each comparison with it is false."""
    if condition.startswith(VARIABLE):
        name, _, value = condition[len(VARIABLE) :].partition("=")
        values = facts.variables.get(name, set())
        return value in values if value else bool(values)
    compared = COMPARISON.fullmatch(condition)
    if condition == "one_node" and "many_nodes" in facts.names:
        # A job of several nodes also has communicators within one node.
        return False
    if not compared:
        return condition in facts.names
    name, sign, version = compared.groups()
    wanted = numbers(version)
    fits = OPERATORS[sign][0]
    return any(
        fits(numbers(known)[: len(wanted)], wanted) for known in facts.versions.get(name, ())
    )


def numbers(version: str) -> Numbers:
    return tuple(map(int, re.findall(r"\d+", version)))


def in_words(condition: str) -> str:
    """Returns a condition as a phrase in Markdown."""
    if condition.startswith(ERROR):
        names = condition[len(ERROR) :].split(",")
        return " or ".join(f"`{ERRORS[name][1]}`" for name in names)
    if condition.startswith(LINE):
        return f"`{condition[len(LINE) :]}` in the line"
    if condition.startswith(VARIABLE):
        return f"`{condition[len(VARIABLE) :]}` is set"
    compared = COMPARISON.fullmatch(condition)
    if compared:
        name, sign, version = compared.groups()
        return f"{WORDS_OF_PROGRAMS[name]} {OPERATORS[sign][1]} {version}"
    return WORDS_OF_FACTS[condition]
