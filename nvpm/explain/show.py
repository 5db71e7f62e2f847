# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the answer for people, in 12 lines at most."""

import textwrap
from typing import Callable, Iterator, List

from ..read.machine import clean
from . import here
from .answer import FOLLOWING, FOUND, PERHAPS, UNKNOWN, Answer, counted, log_of, plain, who
from .judge import NO_CASE, Found, Proof
from .lines import hosts_of
from .scan import Hit, Variant
from .texts import pattern
from .wording import sentence

# Lines of the answer; the width if the output is no terminal; lines of a sentence.
HEIGHT, WIDTH, MOST_LINES = 12, 100, 3
INDENT = "  "
# The text after a message that stays if its line is cut.
BEHIND = 40
MOST_SHOWN = 3
NOTHING_FOUND = "Nothing here is about GPUDirect RDMA: no line is one of its errors."
NOTHING_WRONG = "No line is an error of GPUDirect RDMA. These lines say that nothing is wrong:"
NO_PROOF = "No line shows the cause for sure. Possible causes, and what tells them apart:"
NO_CAUSE = "No cause: these lines follow from a failure that is not in this log."
KNOWN_BY_NOBODY = "These lines look like errors, and nvpm knows none of them ({}):"
NEXT = (
    "To do: the first of them is nearest to the cause; nvpm status says what is wrong on the node."
)


class Text:
    """The answer as lines of at most WIDTH columns. QUOTED changes a line of the log before it is
    printed."""

    def __init__(self, answer: Answer, width: int = 0, quoted: Callable[[str], str] = str) -> None:
        self.answer, self.width, self.quoted = answer, width or WIDTH, quoted
        self.several = len(answer.names) > 1

    def brief(self) -> Iterator[str]:
        """Yields the answer, without control characters, which a log may contain."""
        yield from list(map(clean, self.lines()))[:HEIGHT]

    def everything(self) -> Iterator[str]:
        """Yields the answer, and every message that was found, with the reason if it shows no
        cause."""
        yield from map(clean, self.lines())
        yield from map(clean, self.found())

    # ---- lines ----

    def sentence(self, text: str, most: int = MOST_LINES, indent: str = "") -> List[str]:
        """Returns a sentence in at most MOST lines."""
        lines = textwrap.wrap(
            text,
            self.width,
            initial_indent=indent,
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        )
        if len(lines) > most:
            lines = [*lines[: most - 1], lines[most - 1][: self.width - 4] + " ..."]
        return lines

    def place(self, hit: Hit) -> str:
        name, number = hit.place
        return f"{self.quoted(name)}:{number}" if self.several else f"line {number}"

    def line(self, hit: Hit, message: str = "") -> str:
        """Returns a line of the log with its place. If the line is too long, the part with the
        MESSAGE stays."""
        place = f"{INDENT}{self.place(hit)}: "
        text = self.quoted(hit.text)
        room = max(self.width - len(place), 20)
        if len(text) <= room:
            return place + text
        found = pattern(message).search(text) if message else None
        end = min(found.end() + BEHIND, len(text)) if found else 0
        start = max(end - room + 4, 0)
        before, after = ("... " if start else ""), (" ..." if start + room < len(text) else "")
        return place + before + text[start : start + room - len(before) - len(after)] + after

    def message(self, variant: Variant, hit: Hit) -> str:
        return self.line(hit, variant.entry.message.text)

    # ---- the answer ----

    def lines(self) -> Iterator[str]:
        scan, names = self.answer.scan, self.answer.names
        name = (
            f"{len(names)} files" if self.several else self.quoted(names[0]) if names else "no file"
        )
        about = log_of(scan.facts, scan.sources)
        colon = ": " if about else ""
        yield from self.sentence(f"{name}: {counted(scan.lines, 'line')}{colon}{about}", 2)
        kind = self.answer.kind()
        if kind == FOUND:
            yield from self.causes()
            yield from self.besides()
        elif kind == PERHAPS:
            yield from self.perhaps()
            yield from self.besides()
        elif kind == FOLLOWING:
            yield from self.follows()
        elif kind == UNKNOWN:
            yield from self.unknown()
        else:
            yield from self.nothing()

    def causes(self) -> Iterator[str]:
        verdict = self.answer.verdict
        first = verdict.causes[0]
        sure = "certain" if verdict.certain() else "probable"
        rival = next(iter(verdict.equals()[1:]), None)
        if rival:
            yield from self.one_of_two(first, rival, sure)
        else:
            yield from self.cause(first, sure)
            yield from self.node(first)
            yield from self.others(first)

    def cause(self, found: Found, sure: str) -> Iterator[str]:
        ours = found.cause.ours or found.cause.subject
        other = "" if ours else " nv_peer_mem is not the cause."
        yield from self.sentence(f"Cause ({sure}): {plain(found.says())}.{other}")
        proof = found.best()
        message = proof.variant.entry.message
        yield self.message(proof.variant, proof.hit)
        yield from self.repeated(found, proof)
        note = plain(sentence(message.note)).rstrip(".")
        if note:
            yield from self.sentence(f"{note}.", 2, INDENT)
        yield from self.sentence(f"To do: {self.to_do(found)}.")

    def to_do(self, found: Found) -> str:
        return plain(here.to_do(found, self.answer.facts))

    def one_of_two(self, first: Found, second: Found, sure: str) -> Iterator[str]:
        """Yields two causes that are as likely. If one line shows both, the line is printed once,
        and there is more room for the advice."""
        same = first.best().hit is second.best().hit
        room = MOST_LINES if same else MOST_LINES - 1
        for start, found in ((f"One of two causes ({sure}):", first), ("Or:", second)):
            proof = found.best()
            yield from self.sentence(f"{start} {plain(found.says())}.", 2)
            if found is first or not same:
                yield self.message(proof.variant, proof.hit)
            tell = f" This cause, if {plain(found.cause.tell)}." if found.cause.tell else ""
            yield from self.sentence(f"To do: {self.to_do(found)}.{tell}", room, INDENT)

    def repeated(self, found: Found, proof: Proof) -> Iterator[str]:
        """Yields how often the line is in the log, on which nodes, and how many other messages show
        the same cause."""
        scan = self.answer.scan
        texts = []
        if proof.hit.count > 1:
            texts.append(f"{counted(proof.hit.count, 'line')} like it")
        texts.append(who(proof.hit.sources, scan.sources, scan.facts))
        others = {one.variant.entry.number for one in found.proofs} - {proof.variant.entry.number}
        if others:
            texts.append(f"{counted(len(others), 'other message')} with the same cause")
        said = "; ".join(filter(None, texts))
        if said:
            yield from self.sentence(self.quoted(f"{said}."), 1, INDENT)

    def node(self, found: Found) -> Iterator[str]:
        """Yields what this node says about the cause, or which node shows the cause."""
        status = plain(found.cause.status)
        if self.answer.facts is not None:
            fact, fits = here.word(found, self.answer.facts)
            if fact:
                judged = "That fits." if fits else "That speaks against this cause now."
                yield from self.sentence(f"This node: {fact}. {judged}", 2)
        elif status != "-":
            hosts = sorted(hosts_of(found.best().hit.sources))
            where = f"on {hosts[0]}" if hosts else "on the node of the log"
            yield from self.sentence(
                self.quoted(f"nvpm status --all {where} shows it: {status}."), 1
            )

    def others(self, first: Found) -> Iterator[str]:
        """Yields the next causes. A cause that the line of the first cause can also have is printed
        with the sign that tells the two causes apart. Such a cause is left out if the first cause
        is certain."""
        verdict = self.answer.verdict
        same = {proof.hit for proof in first.proofs}
        for other in verdict.causes[1:3]:
            proof = other.best()
            if any(one.hit in same for one in other.proofs):
                if verdict.certain():
                    continue
                start, end = "If not: ", plain(other.cause.tell)
            else:
                start, end = "Also: ", self.place(proof.hit)
            end = f" ({end})" if end else ""
            yield from self.sentence(f"{start}{plain(other.says())}{end}.", 2)

    def perhaps(self) -> Iterator[str]:
        """Yields causes that are possible and no more."""
        yield from self.sentence(NO_PROOF)
        for found in self.answer.verdict.causes[:MOST_SHOWN]:
            tell = f" ({plain(found.cause.tell)})" if found.cause.tell else ""
            yield from self.sentence(f"- {plain(found.says())}{tell}.", 2)
        first = self.answer.verdict.causes[0]
        proof = first.best()
        yield from self.sentence("The line that it is about:", 1)
        yield self.message(proof.variant, proof.hit)
        yield from self.sentence(f"To do: {self.to_do(first)}.")

    def follows(self) -> Iterator[str]:
        yield from self.sentence(NO_CAUSE)
        shown = sorted(self.answer.verdict.follows, key=lambda one: one.hit.order)[:2]
        for one in shown:
            yield self.message(one.variant, one.hit)
        for text in dict.fromkeys(one.variant.entry.message.do for one in shown):
            yield from self.sentence(f"To do: {plain(text)}.")

    def besides(self) -> Iterator[str]:
        """Yields where lines stand that look like errors, and that no cause explains."""
        hits = self.answer.unknown()
        if hits:
            kinds = counted(len(hits), "other kind")
            yield from self.sentence(
                f"{kinds} of line looks like an error, and nvpm does not know it "
                f"({self.place(hits[0])})."
                if len(hits) == 1
                else f"{kinds} of line look like errors, and nvpm does not know them (from "
                f"{self.place(hits[0])} on).",
                1,
            )

    def unknown(self) -> Iterator[str]:
        hits = self.answer.unknown()
        yield from self.sentence(KNOWN_BY_NOBODY.format(f"{counted(len(hits), 'kind')} of line"))
        for hit in hits[:MOST_SHOWN]:
            yield self.line(hit)
        yield from self.sentence(NEXT)

    def nothing(self) -> Iterator[str]:
        fine = [one for one in self.answer.verdict.aside if one.why != NO_CASE][:MOST_SHOWN]
        yield from self.sentence(NOTHING_WRONG if fine else NOTHING_FOUND)
        for one in fine:
            yield self.message(one.variant, one.hit)

    def found(self) -> Iterator[str]:
        verdict = self.answer.verdict
        for found in verdict.causes:
            yield ""
            yield from self.sentence(f"{plain(found.says())} ({found.score():g}):", 2)
            for proof in found.proofs:
                yield self.message(proof.variant, proof.hit)
        for title, asides in (("Follows", verdict.follows), ("Aside", verdict.aside)):
            for one in asides:
                yield f"{title}: {one.why}:"
                yield self.message(one.variant, one.hit)
