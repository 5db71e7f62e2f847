# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Chooses the kind of answer, and describes the log: its programs, ranks and nodes."""

import re
from typing import Iterable, List, NamedTuple, Optional, Set

from ..compare.groups import folded
from ..facts.fact import Fact
from .judge import NO_CASE, Verdict
from .lines import Source, hosts_of
from .log_facts import LogFacts
from .model import POSSIBLE
from .scan import Hit, Scan, is_error
from .signs import WORDS_OF_PROGRAMS

FOUND, PERHAPS, FOLLOWING, UNKNOWN, NOTHING = "cause", "perhaps", "follows", "unknown", "nothing"
# The exit codes of the answers.
CODES = {FOUND: 3, PERHAPS: 4, FOLLOWING: 4, UNKNOWN: 4, NOTHING: 0}
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
# The answer names this number of programs at most.
MOST_PROGRAMS = 4
# The answer names these facts, because they describe the machine.
KINDS = (("amd", "AMD GPUs"), ("efa", "EFA"), ("gb10", "DGX Spark"), ("geforce", "GeForce"))


def plain(text: str) -> str:
    """Returns a text of the table without Markdown."""
    return LINK.sub(r"\1 (\2)", text).replace("`", "")


class Answer(NamedTuple):
    """The answer contains what the scan has found and what the judge has said. FACTS are the facts
    that nvpm status has found on this node. FACTS is None if another node has written the log."""

    names: List[str]
    scan: Scan
    verdict: Verdict
    facts: Optional[List[Fact]]

    def kind(self) -> str:
        if self.verdict.causes:
            return FOUND if self.verdict.causes[0].sure() > POSSIBLE else PERHAPS
        if self.unknown():
            return UNKNOWN
        return FOLLOWING if self.verdict.follows else NOTHING

    def unknown(self) -> List[Hit]:
        """Returns lines that look like errors and that the table does not explain, or explains
        only under conditions that do not hold in this log. One line may contain several messages of
        the table."""
        hits = [hit for hit in self.scan.unknown.values() if hit.count]
        explained = {proof.hit.order for found in self.verdict.causes for proof in found.proofs}
        explained |= {one.hit.order for one in self.verdict.follows}
        hits += {
            one.hit
            for one in self.verdict.aside
            if one.why == NO_CASE and one.hit.order not in explained and is_error(one.hit.text)
        }
        return sorted(hits, key=lambda hit: hit.order)


def log_of(facts: LogFacts, sources: Set[Source]) -> str:
    """Returns what is known of the log as a whole: programs, ranks and nodes."""
    programs = [
        f"{words} {' and '.join(facts.versions[name][:2])}"
        for name, words in WORDS_OF_PROGRAMS.items()
        if name in facts.versions
    ][:MOST_PROGRAMS]
    programs += [words for name, words in KINDS if name in facts.names]
    nodes, ranks = nodes_of(facts, sources), ranks_of(facts, sources)
    if ranks and nodes and (nodes > 1 or facts.nodes):
        programs.append(f"{counted(ranks, 'rank')} on {counted(nodes, 'node')}")
    elif ranks or nodes > 1:
        programs.append(counted(ranks, "rank") if ranks else counted(nodes, "node"))
    return ", ".join(programs)


def nodes_of(facts: LogFacts, sources: Set[Source]) -> int:
    """Returns the number of nodes that the log names. Returns 0 if the log names none."""
    return max(facts.nodes, len(hosts_of(sources)))


def ranks_of(facts: LogFacts, sources: Set[Source]) -> int:
    """Returns the number of ranks that the log names. Returns 0 if the log names none."""
    return max(facts.ranks, len({one.rank for one in sources if one.rank}))


def counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def who(hit_sources: Iterable[Source], all_sources: Set[Source], facts: LogFacts) -> str:
    """Returns which hosts and ranks printed a line, if they are not all hosts and ranks of the
    log."""
    found: Set[Source] = set(hit_sources)

    def rank_of(source: Source) -> str:
        return source.rank or facts.rank_of.get((source.host, source.process), "")

    texts = []
    hosts, all_hosts = sorted(hosts_of(found)), hosts_of(all_sources)
    ranks = {rank_of(one) for one in found} - {""}
    all_ranks = {rank_of(one) for one in all_sources} - {""}
    if ranks and len(ranks) < len(all_ranks):
        word = "rank" if len(ranks) == 1 else "ranks"
        total = max(facts.ranks, len(all_ranks))
        # The ranks that printed a line can be fewer than those of the job.
        of = f" of {total}" if max(map(number_of, all_ranks)) < total else ""
        names = folded(sorted(ranks, key=number_of)).strip("[]")
        texts.append(f"only on {word} {names}{of}")
    if hosts and len(hosts) < len(all_hosts):
        others = counted(len(all_hosts) - len(hosts), "other node")
        texts.append(f"only on {folded(hosts)}, and not on {others}")
    elif len(hosts) > 1:
        texts.append(
            f"on all {len(hosts)} nodes" if len(hosts) == len(all_hosts) else f"on {folded(hosts)}"
        )
    return "; ".join(texts)


def number_of(text: str) -> int:
    return int(text) if text.isdigit() else 0
