# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that nv_peer_mem prints, or that other programs print about nv_peer_mem. They
are made of the table nvpm/own. The page docs/messages.md leaves them out, because
docs/troubleshooting.md is made of the same table."""

from typing import Dict

from ...own.model import CAUSE, FOLLOWS, Own
from ...own.table import MESSAGES
from .. import causes
from ..model import FITS, NAMED, Case, Cause, Message, Section

# The causes that only one message has.
CAUSES: Dict[Cause, str] = {
    Cause(one.cause, one.action, subject=True, name=one.id, here=one.here): one.id
    for one in MESSAGES
    if one.kind == CAUSE and not one.like
}
OF_ID = {name: cause for cause, name in CAUSES.items()}


def case_of(one: Own) -> Case:
    """Returns the case of a message: with its own cause, or with its own words for a cause that
    messages of other programs have, too."""
    if not one.like:
        return Case(OF_ID[one.id])
    shared: Cause = getattr(causes, one.like)
    return Case(shared, do=one.action, says=one.cause, here=one.here)


def message_of(one: Own) -> Message:
    sure = FITS if one.rest else NAMED
    if one.kind == CAUSE:
        return Message(one.text, one.id, (case_of(one),), sure=sure)
    do = one.action if one.kind == FOLLOWS else ""
    return Message(one.text, one.id, note=one.cause, do=do, kind=one.kind)


SECTION = Section("nv_peer_mem", "", tuple(map(message_of, MESSAGES)))
