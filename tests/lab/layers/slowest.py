# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Notes how long each piece of a run has taken. A piece is a layer that was made, a scenario, or a
check. The boot of a guest counts for its first scenario."""

PIECES: list[tuple[int, str]] = []


def took(piece: str, seconds: int) -> None:
    PIECES.append((seconds, piece))


def slowest(number: int = 10) -> list[str]:
    """Returns a line for each of the slowest pieces. Pieces of less than a second are left out."""
    found = sorted(PIECES, key=lambda piece: -piece[0])[:number]
    return [f"{seconds:5} s  {piece}" for seconds, piece in found if seconds]
