# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The types of the table of nv_peer_mem's own messages. Each message stands in the table once.
`nvpm explain` and `nvpm advise` print the words of the table, and docs/troubleshooting.md is made
of them. The programs that print the messages contain only the texts, and tests/nvpm/test_own.py
compares these texts with the table.

Texts are in Markdown, as in explain/model.py."""

from typing import NamedTuple, Tuple

# CAUSE: the message shows the cause of a failure. FOLLOWS: the message follows from a failure that
# another line names. FINE: nothing is wrong.
CAUSE, FOLLOWS, FINE = KINDS = "cause", "follows", "fine"


class Own(NamedTuple):
    """A message that a program of nv_peer_mem prints, or that another program prints about
    nv_peer_mem."""

    id: str  # stays the same when the text of the message changes
    # The part of the text by which the message is known, with the placeholders of
    # explain/texts.py.
    text: str
    cause: str  # what is wrong, or what the message means, without a full stop at its end
    action: str = ""  # what to do next; empty if nothing is to be done
    kind: str = CAUSE
    # The name of the cause in explain/causes.py that this message shows. Other programs have
    # messages of the same cause. If empty, no other message has this cause.
    like: str = ""
    # The action on the machine that prints the message, with the words of facts/advice.py in
    # braces. `nvpm advise` prints it in place of `action`.
    here: str = ""
    rest: bool = False  # another message in the same line or near it says more


class Group(NamedTuple):
    """The messages of one table in docs/troubleshooting.md."""

    name: str
    messages: Tuple[Own, ...]
