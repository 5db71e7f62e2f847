# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The types of the table that `nvpm explain` looks messages up in. docs/messages.md is made of the
same table.

Texts are in Markdown, because the page contains them. A text may use backticks and links, and no
other Markdown."""

from typing import NamedTuple, Tuple

# CAUSE: the message shows the cause of a failure. FOLLOWS: the message follows from a failure that
# another message explains. FINE: the message looks like a failure, and nothing is wrong.
CAUSE, FOLLOWS, FINE = KINDS = "cause", "follows", "fine"

# How sure a cause is. NAMED: the message cannot have another cause. FITS: other causes are rare.
# POSSIBLE: other causes are as likely, and only other lines or the node decide.
NAMED, FITS, POSSIBLE = 3, 2, 1

# A condition is a text in one of these forms. signs.py lists the facts.
#   "errno=ENOMEM,EAGAIN"  the line has one of these errors, as a name, a number or in words
#   "line:via NET/IB"      the line contains this text, which may have the placeholders of texts.py
#   "geforce"              the log has this fact
#   "nccl<2.23"            the log has this version; also <=, >=, > and =
#   "var:NCCL_NET"         the log says that this variable is set; "var:NCCL_IB_DISABLE=1": to 1
Conditions = Tuple[str, ...]


class Cause(NamedTuple):
    """A cause that several messages can share."""

    says: str  # what is wrong, as a phrase without a full stop at its end
    do: str  # what to do next
    # The section and the line of `nvpm status` that show the cause, as "access: `memory lock`".
    status: str = "-"
    ours: bool = False  # whether loading or setting up nv_peer_mem helps
    subject: bool = False  # whether nv_peer_mem itself can be what fails
    tell: str = ""  # what tells this cause from others that print the same message
    name: str = ""  # what the page calls it
    # Whether the advice of this node's own fact takes the place of `do`, because the fact knows
    # what is installed here.
    of_node: bool = False
    # What to do on the machine that asks, with the words of facts/advice.py in braces. `nvpm
    # advise` prints this text in place of `do`.
    here: str = ""


class Case(NamedTuple):
    """A cause of a message, under conditions."""

    cause: Cause
    when: Conditions = ()  # all have to hold
    unless: Conditions = ()  # not one may hold
    sure: int = 0  # in place of the message's
    do: str = ""  # in place of the cause's
    says: str = ""  # in place of the cause's
    here: str = ""  # in place of the cause's


class Message(NamedTuple):
    """A message that a program prints. The first case that holds in a log and is more than possible
    wins. Possible cases are named beside the winner."""

    # The literal text of the message, with the placeholders of texts.py where the text varies.
    text: str
    source: str  # the repository and the file with the format string, and threads about it
    cases: Tuple[Case, ...] = ()
    note: str = ""  # what is particular about the message, in one or two sentences
    do: str = ""  # what to do, in place of the causes' words
    kind: str = CAUSE
    unless: Conditions = ()  # the message says nothing if one of these holds
    sure: int = NAMED

    def sure_of(self, case: Case) -> int:
        """Returns how sure a case of this message is."""
        return case.sure or self.sure


class Section(NamedTuple):
    """A section of docs/messages.md."""

    title: str
    intro: str
    messages: Tuple[Message, ...]
