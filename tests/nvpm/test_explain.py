# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of `nvpm explain` is complete: each message is found in a line, each case has its
cause, and each exclusion excludes. docs/messages.md is made of the table."""

import re

import messages_page
import pytest
from explained import SHOWING, explained, line_of, lines_for, scanned
from installed import TOP

from nvpm.explain import texts
from nvpm.explain.conditions import holds_in_log, in_words, is_of_line
from nvpm.explain.here import DEVICES
from nvpm.explain.here import LINE as LINE_OF_STATUS
from nvpm.explain.judge import ON_OTHER_NIC
from nvpm.explain.messages import ours
from nvpm.explain.model import CAUSE, FOLLOWS, KINDS, POSSIBLE, Cause, Message
from nvpm.explain.signs import SIGNS
from nvpm.explain.table import CAUSES, ENTRIES, SECTIONS, Entry
from nvpm.facts.fact import Fact, judged, slug

MESSAGES = [entry.message for entry in ENTRIES]
MOST_EXPANDED = 6


def name(value: object) -> str:
    return value.message.text if isinstance(value, Entry) else str(value)


def test_each_message_stands_once() -> None:
    every = [one for message in MESSAGES for one in texts.expanded(message.text)]
    assert len(every) == len(set(every)), {one for one in every if every.count(one) > 1}


def test_each_cause_is_used() -> None:
    used = {case.cause for message in MESSAGES for case in message.cases}
    used |= set(ON_OTHER_NIC.values())
    used -= set(ours.CAUSES)
    assert set(CAUSES) == used, [key for cause, key in CAUSES.items() if cause not in used]


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_form(entry: Entry) -> None:
    message = entry.message
    assert message.kind in KINDS
    assert bool(message.cases) == (message.kind == CAUSE)
    assert message.kind != FOLLOWS or message.do
    assert len(texts.expanded(message.text)) <= MOST_EXPANDED
    for text in texts.expanded(message.text):
        assert any(len(word) >= 4 for word, _ in texts.words(text)), text
    for case in message.cases:
        for one in (*case.when, *case.unless):
            assert in_words(one)
    assert not re.search(r"[|\n]", message.note + message.do)


def decided(message: Message) -> list[tuple[object, ...]]:
    return [(case.when, case.unless, message.sure_of(case)) for case in message.cases]


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_a_condition_decides_between_causes(entry: Entry) -> None:
    found = [one for one in decided(entry.message) if one[2] != POSSIBLE]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_each_case_has_its_cause(entry: Entry) -> None:
    message = entry.message
    for case in message.cases:
        verdict = explained(lines_for(entry, case.when))
        found = {
            proof.case
            for one in verdict.causes
            for proof in one.proofs
            if proof.variant.entry == entry
        }
        assert case in found, (case, lines_for(entry, case.when))


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_each_message_is_found(entry: Entry) -> None:
    for text in texts.expanded(entry.message.text):
        failing = " error" if entry.general else " ..."
        hits = scanned([line_of(text) + failing]).hits
        assert entry in {variant.entry for variant in hits}, line_of(text)


EXCLUSIONS = [(entry, condition) for entry in ENTRIES for condition in entry.message.unless] + [
    (entry, condition)
    for entry in ENTRIES
    for case in entry.message.cases
    for condition in case.unless
]


@pytest.mark.parametrize(("entry", "condition"), EXCLUSIONS, ids=name)
def test_each_exclusion_excludes(entry: Entry, condition: str) -> None:
    message = entry.message
    if condition in message.unless:
        verdict = explained(lines_for(entry, (condition,)))
        assert any(one.why == condition for one in verdict.aside if one.variant.entry == entry)
        return
    for case in message.cases:
        if condition in case.unless:
            lines = lines_for(entry, (*case.when, condition))
            proofs = [proof for one in explained(lines).causes for proof in one.proofs]
            assert case not in [one.case for one in proofs if one.variant.entry == entry], lines


@pytest.mark.parametrize("sign", SIGNS, ids=lambda one: one.fact)
def test_each_fact_is_seen(sign: object) -> None:
    fact = getattr(sign, "fact")  # noqa: B009
    found = scanned([SHOWING[fact]]).facts.names
    assert fact in found
    # An example shows no other fact, except that the log is about GPUs and their modules.
    assert found - {fact} <= {"gpu", "rdma_module"}


def test_page() -> None:
    page = messages_page.PAGE.read_text(encoding="utf-8")
    assert page == messages_page.page(page), "run tests/nvpm/messages_page.py"
    assert sum(len(section.messages) for section in SECTIONS) > 400


@pytest.mark.parametrize("cause", CAUSES, ids=lambda one: one.name)
def test_form_of_a_cause(cause: Cause) -> None:
    assert cause.name and cause.says and cause.do
    if cause.status != "-":
        assert re.fullmatch("(?:[A-Za-z ]+: (?:`[^`]+`(?:, )?)+(?:; )?)+", cause.status)


def test_conditions() -> None:
    assert is_of_line("errno=ENOMEM") and is_of_line("line:word") and not is_of_line("geforce")
    facts = scanned(["NCCL_IB_DISABLE=0", "NCCL version 2.22.3+cuda12.6"]).facts
    for condition, holds in (
        ("var:NCCL_IB_DISABLE", True),
        ("var:NCCL_IB_DISABLE=0", True),
        ("var:NCCL_IB_DISABLE=1", False),
        ("var:NCCL_IB", False),
        ("nccl<2.23", True),
        ("nccl<=2.22", True),
        ("nccl<2.22", False),
        ("nccl>=2.22.3", True),
        ("nccl=2.2", False),
        ("ucx<2", False),
        ("geforce", False),
    ):
        assert holds_in_log(condition, facts) == holds, condition


# The identifiers of facts that the tables of machines expect. test_tables.py checks that nvpm
# status prints them there.
EXPECTED = {
    one
    for table in ("machines", "judged", "varied")
    for found in re.finditer(
        r"^(?:[^#\n]* => )?(?:good|warn|bad|none) ([\w.:/,*-]+)",
        (TOP / "tests/nvpm" / table).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    for one in found[1].rstrip(":").split(",")
}


@pytest.mark.parametrize("cause", CAUSES, ids=lambda one: one.name)
def test_status_has_the_lines_of_a_cause(cause: Cause) -> None:
    """Some machine of the tests has each line of status that a cause names."""
    facts = [made(one) for one in sorted(EXPECTED)]
    for section, names in LINE_OF_STATUS.findall(cause.status):
        for line in re.findall("`([^`]+)`", names):
            wanted = slug(line).replace("_", " ")
            assert any(in_section(fact, section.strip(), wanted) for fact in facts), (section, line)


def made(identifier: str) -> Fact:
    """Returns a fact with this identifier, as far as an identifier tells its names."""
    section, _, name = identifier.replace("_", " ").partition("/")
    return judged("bad", section, name, "")


def in_section(fact: Fact, section: str, line: str) -> bool:
    prefix = DEVICES.get(section)
    same = fact.section.startswith(prefix.lower()) if prefix else fact.section == section.lower()
    return same and (fact.name.startswith(line) or fact.name.endswith(line))
