# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ranks the causes of what was found in a log.

A cause is as sure as the surest message that shows it. A cause of the newest run comes first. Each
further message and each fact that a case needs makes the cause surer. Causes that other failures
can have, such as a peer that is gone, come after causes that are as sure. The earliest line decides
between equal causes. A line that only says that something is missing never comes before an earlier
line that says why."""

from typing import Dict, FrozenSet, Iterable, List, NamedTuple

from . import causes as c
from .conditions import holds_in_log, is_of_line
from .log_facts import LogFacts
from .model import FINE, FOLLOWS, NAMED, POSSIBLE, Case, Cause
from .scan import Hit, Scan, Variant, line_allows

# The number that a further message, or a fact that a case needs, adds to the score.
ONE_MORE = 0.5
MOST_MORE = 2
# Transfers fail in these ways after something else has failed, on this node or on another node.
LATE = frozenset({c.NETWORK, c.PEER_NIC, c.FREED, c.OTHER_VERSIONS, c.BOOTSTRAP})
LATER = 0.75
# The number by which the score of a cause falls if only earlier runs show the cause, because people
# ask about the newest run.
EARLIER_RUN = 1.5
# The causes by which no peer-memory module is loaded.
NOT_LOADED = frozenset(
    {
        c.OFED_REPLACED,
        c.NO_PEER_CORE,
        c.MIXED_OFED,
        c.SIGNATURE,
        c.NOT_ALLOWED,
        c.OTHER_KERNEL,
        c.NOT_INSTALLED,
        c.NO_PEERMEM_MODULE,
        c.NO_NVIDIA,
        c.DRIVER_REPLACED,
        c.PEERMEM_DEFECT,
        c.OLD_NV_PEER_MEM,
        c.CALLBACK,
        c.PARAMETER,
    }
)
# For each cause that only says which part is missing, the causes by which this part can be missing.
REASONS: Dict[Cause, FrozenSet[Cause]] = {
    c.NO_DEVICE: frozenset(
        {
            c.NO_PROVIDER,
            c.DEVICE_DENIED,
            c.NIC_LOST,
            c.SIGNATURE,
            c.MIXED_OFED,
            c.RDMA_NETNS,
            c.EFA_VERSIONS,
        }
    ),
    c.NOT_MLX5: frozenset({c.EFA_NO_RC, c.NIC_NAME}),
    c.NO_CLIENT: NOT_LOADED,
    c.MARKER: NOT_LOADED,
}
# Only NVIDIA's NICs have these causes, and EFA's driver does not use the RDMA core's peer memory.
NOT_ON_EFA = frozenset(
    {
        c.DEVX,
        c.SCATTER,
        c.UAR,
        c.PINNED_QUEUES,
        c.DATA_DIRECT,
        c.NO_ODP,
        c.DIRECT_NIC,
        c.NIC_NAME,
        c.NO_CLIENT,
    }
)
NVIDIA_NIC = frozenset({"mlx5_nic", "infiniband"})
# The drivers of other NICs take no pointers to GPU memory. If a log names only such NICs, these
# causes stand in place of the causes of NVIDIA's NICs.
ON_OTHER_NIC: Dict[Cause, Cause] = {
    c.NO_CLIENT: c.NIC_NEVER_ASKS,
    c.VMM: c.NIC_NEVER_ASKS,
    c.NO_DMABUF: c.NIC_NO_DMABUF,
}
# Only NVIDIA's GPUs have these causes.
OF_NVIDIA_GPU = frozenset({c.NO_CLIENT, c.MARKER, c.MEMORY_PEERS, c.NO_DMABUF, c.GEFORCE, c.VMM})
OTHER_GPU = frozenset({"amd", "other_gpu"})
NVIDIA_GPU = frozenset({"geforce", "data_center"})


class Proof(NamedTuple):
    """A message that shows a cause."""

    variant: Variant
    hit: Hit
    case: Case
    sure: int

    def to_do(self) -> str:
        """Returns the advice of the case, of the message or of the cause: the first that exists."""
        return self.case.do or self.variant.entry.message.do or self.case.cause.do

    def here(self) -> str:
        """Returns the template of the advice for the machine that asks; an empty text if the advice
        is the same for all machines."""
        special = self.case.do or self.variant.entry.message.do
        return self.case.here or ("" if special else self.case.cause.here)

    def says(self) -> str:
        """Returns what is wrong, in the words of the case or of the cause."""
        return self.case.says or self.case.cause.says


class Found:
    """A cause, and the messages that show the cause."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        self.proofs: List[Proof] = []
        # The facts on this node add this number to the score.
        self.of_node = 0.0
        # A later line that this cause explains adds this number.
        self.of_log = 0.0
        # Whether only runs before the newest one show the cause.
        self.earlier = False

    def best(self) -> Proof:
        """Returns the surest proof. If several proofs are in one line, the message with the fewest
        causes says most."""
        return min(
            self.proofs,
            key=lambda one: (-one.sure, one.hit.order, len(one.variant.entry.message.cases)),
        )

    def sure(self) -> int:
        return self.best().sure

    def says(self) -> str:
        return self.best().says()

    def score(self) -> float:
        texts = {proof.variant.entry.number for proof in self.proofs}
        facts = {one for proof in self.proofs for one in proof.case.when if not is_of_line(one)}
        more = min(len(texts) - 1, MOST_MORE) + min(len(facts), MOST_MORE)
        late = LATER if self.cause in LATE else 0.0
        late += EARLIER_RUN if self.earlier else 0.0
        return self.sure() + ONE_MORE * more - late + self.of_node + self.of_log

    def first(self) -> int:
        return min(proof.hit.order for proof in self.proofs)


class Aside(NamedTuple):
    """A message that was found, and shows no cause here."""

    variant: Variant
    hit: Hit
    why: str


# The reasons why a message was put aside.
FINE_HERE, FOLLOWS_HERE, NO_CASE = (
    "nothing is wrong",
    "follows from another failure",
    "no known cause fits",
)


class Verdict(NamedTuple):
    """The causes from the likeliest to the least likely, the messages that follow from a failure
    that the log does not contain, and the messages that were put aside."""

    causes: List[Found]
    follows: List[Aside]
    aside: List[Aside]

    def certain(self) -> bool:
        """Returns whether the first cause is certain: a message names it, and no other cause is as
        likely."""
        first, rivals = self.causes[0], self.causes[1:2]
        return first.sure() == NAMED and not any(
            one.sure() == NAMED and one.score() > first.score() - 1 for one in rivals
        )

    def equals(self) -> List[Found]:
        """Returns the causes that are as likely as the first one."""
        best = self.causes[0]
        return [
            one for one in self.causes if one.sure() == best.sure() and one.score() == best.score()
        ]


def of_other_nic(cause: Cause, facts: LogFacts) -> bool:
    """Returns whether the log's only network is EFA, and only other NICs can have the cause."""
    return cause in NOT_ON_EFA and "efa" in facts.names and not NVIDIA_NIC & facts.names


def of_other_gpu(cause: Cause, facts: LogFacts) -> bool:
    """Returns whether the log names only GPUs of other makers, and only NVIDIA's GPUs can have the
    cause."""
    return (
        cause in OF_NVIDIA_GPU
        and not OTHER_GPU.isdisjoint(facts.names)
        and NVIDIA_GPU.isdisjoint(facts.names)
    )


def for_nic(case: Case, facts: LogFacts) -> Case:
    """Returns the case with the cause and the advice for the NICs that the log names."""
    cause = ON_OTHER_NIC.get(case.cause)
    if cause is None or "other_nic" not in facts.names or NVIDIA_NIC & facts.names:
        return case
    return case._replace(cause=cause, do=cause.do, says="")


def holds(case: Case, variant: Variant, facts: LogFacts) -> bool:
    return (
        line_allows(case.when, case.unless, variant)
        and not of_other_nic(case.cause, facts)
        and not of_other_gpu(case.cause, facts)
        and all(holds_in_log(one, facts) for one in case.when if not is_of_line(one))
        and not any(holds_in_log(one, facts) for one in case.unless if not is_of_line(one))
    )


def excluded(variant: Variant, facts: LogFacts) -> str:
    """Returns the condition by which the message says nothing in this log, or an empty text."""
    for one in variant.entry.message.unless:
        if one in variant.holding if is_of_line(one) else holds_in_log(one, facts):
            return one
    return ""


def cases_of(variant: Variant, facts: LogFacts) -> List[Case]:
    """Returns the cases of a message that hold. The first case that holds and is more than possible
    wins, so a table has the special cases before the general ones."""
    message = variant.entry.message
    found: List[Case] = []
    won = False
    for one in message.cases:
        sure = message.sure_of(one) > POSSIBLE
        if not (won and sure) and holds(one, variant, facts):
            found.append(one)
            won = won or sure
    return found


def judged(scan: Scan) -> Verdict:
    found: Dict[Cause, Found] = {}
    follows: List[Aside] = []
    aside: List[Aside] = []
    for variant, hit in scan.hits.items():
        message = variant.entry.message
        why = excluded(variant, scan.facts)
        if why or message.kind == FINE:
            aside.append(Aside(variant, hit, why or FINE_HERE))
        elif message.kind == FOLLOWS:
            follows.append(Aside(variant, hit, FOLLOWS_HERE))
        else:
            cases = cases_of(variant, scan.facts)
            if not cases:
                aside.append(Aside(variant, hit, NO_CASE))
            for case in (for_nic(one, scan.facts) for one in cases):
                proof = Proof(variant, hit, case, message.sure_of(case))
                found.setdefault(case.cause, Found(case.cause)).proofs.append(proof)
    mark_earlier(found.values(), follows)
    for general, reasons in REASONS.items():
        if general in found:
            explain_by(found[general], [one for cause, one in found.items() if cause in reasons])
    return Verdict(ranked(found.values()), follows, aside)


def mark_earlier(found: Iterable[Found], follows: Iterable[Aside]) -> None:
    """Marks the causes that only earlier runs show. A message that follows from a failure belongs
    to a run that failed, too."""
    causes = [(one, [proof.hit.run for proof in one.proofs]) for one in found]
    runs = [run for _, every in causes for run in every] + [one.hit.run for one in follows]
    newest = max((run for run in runs if run is not None), default=0)
    for one, every in causes:
        one.earlier = all(run is not None and run < newest for run in every)


def explain_by(general: Found, reasons: Iterable[Found]) -> None:
    """A reason can stand in the log before the general cause. Puts each such reason in front of the
    general cause. The general cause shows that the reason did harm, so the reason is as sure."""
    for one in reasons:
        if one.first() <= general.first():
            least = general.sure()
            one.proofs = [proof._replace(sure=max(proof.sure, least)) for proof in one.proofs]
            one.of_log = max(0.0, general.score() - one.score()) + ONE_MORE


def ranked(found: Iterable[Found]) -> List[Found]:
    return sorted(found, key=lambda one: (-one.score(), one.first()))
