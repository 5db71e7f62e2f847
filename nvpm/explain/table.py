# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The whole table: all sections in the order of docs/messages.md and the messages of nv_peer_mem
itself, and an index of the messages by a word of each. A case of another program's message that no
log proves is possible at most, whatever its row says."""

from typing import Dict, FrozenSet, List, NamedTuple, Set, Tuple

from . import causes, texts, verbs
from .conditions import is_of_line
from .messages import (
    dkms,
    driver,
    kernel,
    libfabric,
    mlx5,
    modprobe,
    mooncake,
    mscclpp,
    nccl,
    nixl,
    nvshmem,
    open_mpi,
    operators,
    ours,
    peermem,
    perftest,
    storage,
    ucx,
)
from .model import POSSIBLE, Cause, Message
from .proven import PROVEN

SECTIONS = (
    nccl.SECTION,
    ucx.SECTION,
    open_mpi.SECTION,
    perftest.SECTION,
    nvshmem.SECTION,
    mscclpp.SECTION,
    mooncake.SECTION,
    nixl.SECTION,
    libfabric.SECTION,
    peermem.SECTION,
    modprobe.SECTION,
    kernel.SECTION,
    dkms.SECTION,
    driver.SECTION,
    mlx5.SECTION,
    operators.SECTION,
    storage.SECTION,
)
CAUSES: Dict[Cause, str] = {
    cause: name.lower() for name, cause in vars(causes).items() if isinstance(cause, Cause)
}

# The names of all causes, for programs. A cause that only one own message has gets the name of the
# message.
NAMES: Dict[Cause, str] = {**ours.CAUSES, **CAUSES}


class Entry(NamedTuple):
    """A message of the table."""

    number: int
    message: Message
    general: bool  # the message is a verb of any program

    def line_conditions(self) -> Set[str]:
        """Returns the conditions that concern only the line with the message."""
        cases = self.message.cases
        all_of_them = [self.message.unless, *(one.when + one.unless for one in cases)]
        return {text for texts in all_of_them for text in texts if is_of_line(text)}


def as_proven(message: Message) -> Message:
    """Returns a message whose cases are as sure as the logs of the tests prove them."""
    if PROVEN is None:
        return message
    places = PROVEN.get(message.text, ())
    cases = [
        case if place in places else case._replace(sure=POSSIBLE)
        for place, case in enumerate(message.cases)
    ]
    return message._replace(cases=tuple(cases))


ENTRIES = tuple(
    Entry(number, message, general)
    for number, (message, general) in enumerate(
        [(as_proven(message), False) for section in SECTIONS for message in section.messages]
        # nv_peer_mem's own messages and their causes stand in one table, so no log has to prove
        # them.
        + [(message, False) for message in ours.SECTION.messages]
        + [(as_proven(message), True) for message in verbs.GENERAL]
    )
)


def rarity() -> Dict[str, int]:
    """Returns how many messages contain each word."""
    count: Dict[str, int] = {}
    for entry in ENTRIES:
        found = {
            word for text in texts.expanded(entry.message.text) for word, _ in texts.words(text)
        }
        for word in found:
            count[word] = count.get(word, 0) + 1
    return count


def key_of(text: str, count: Dict[str, int]) -> str:
    """Returns the word by which a text without alternatives is found: the rarest word in the table.
    If several words are equally rare, the longest word is taken. Words that may be cut off come
    last."""
    found = list(texts.words(text))
    return min(found, key=lambda one: (not one[1], count[one[0]], -len(one[0])))[0]


def index() -> Dict[str, Tuple[Entry, ...]]:
    """Returns the messages by their keys."""
    count = rarity()
    found: Dict[str, List[Entry]] = {}
    for entry in ENTRIES:
        for text in texts.expanded(entry.message.text):
            entries = found.setdefault(key_of(text, count), [])
            if entry not in entries:
                entries.append(entry)
    return {word: tuple(entries) for word, entries in found.items()}


INDEX = index()
WORDS: FrozenSet[str] = frozenset(INDEX)
