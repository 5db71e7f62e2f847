# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm selftest: whether GPU memory can be registered and reached, on this machine as it is."""


class Failure(Exception):
    """A pair of GPU and RDMA device did not pass, for that reason."""


class Absent(Exception):
    """Something that every pair needs is not there: what, and what to do."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what)
        self.what, self.advice = what, advice
