# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm selftest: tests whether GPU memory can be registered and reached on this machine."""


class Failure(Exception):
    """A pair of GPU and RDMA device did not pass. The message is the reason."""


class Absent(Exception):
    """A thing that every pair needs is missing. `what` names the thing, and `advice` says what to
    do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what, self.advice = what, advice
