# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ways not to pass."""


class Failure(Exception):
    """This pair did not pass, for that reason."""


class Absent(Exception):
    """Something that every pair needs is not there: what, and what to do."""

    def __init__(self, what, advice):
        super().__init__(what)
        self.what, self.advice = what, advice
