# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each message of the pod has a row of its own in nvpm-rs/data/own, and each of the pod's rows is a
message of the pod."""

from __future__ import annotations

from pathlib import Path

import pytest
from files import KERNEL, Files
from own import MESSAGES, Own, rows

from keeper import cache, decide, places, serve, settings
from keeper.serve import Keeper

TOP = Path(__file__).resolve().parents[2]
POD = [one for one in MESSAGES if one.group == "pod"]


def missing(find: object, *words: object) -> str:
    """Returns what is said about a part that is missing."""
    with pytest.raises(places.Missing) as caught:
        find(*words)  # type: ignore[operator]
    return f"waiting: {caught.value}"


def wrong(name: str, value: str) -> str:
    with pytest.raises(settings.Wrong) as caught:
        settings.settings({name: value}, TOP)
    return str(caught.value)


@pytest.fixture
def said(node: Files, tmp_path: Path) -> list[str]:
    """Returns the messages of the pod, one of each kind, as its functions make them."""
    node.load("nvidia", "550.1")
    node.load_core()
    kept = cache.Cache(tmp_path / "cache")
    found = [
        missing(places.find_headers, node),
        missing(places.find_driver, node, kept),
        missing(places.find_core, node),
        wrong("NVPM_NAME", "x"),
        wrong("NVPM_PARAMETERS", "x"),
        wrong("NVPM_METRICS_PORT", "x"),
        f"blocked: {decide.NVIDIAS}",
        f"unloaded: {decide.ASKED}",
        "failed: the build: pahole is missing, which the build of modules runs",
        "failed: a file cannot be read or written: [Errno 28] No space left on device",
    ]
    waits = [decide.NO_DRIVER, decide.STARTING, decide.NO_UVM, decide.NO_CORE]
    waits += [decide.OFED_NOT_READY, decide.NO_PEER_MEMORY, decide.DRIVER_NOT_READY]
    waits += [serve.WAS_TAKEN]
    found += [f"waiting: {reason}" for reason in waits]
    node.load_own("nvidia_peermem")
    for references, version in ((0, "2.0.0"), (1, "2.0.1")):
        node.load_own("nvidia_peermem", references=references)
        step = decide.decide(node, "nvidia_peermem", version)
        found.append(f"{step.state}: {step.reason}")
    (tmp_path / "cache").chmod(0o777)
    with pytest.raises(cache.Unsafe) as caught:
        cache.Cache(tmp_path / "cache")
    found.append(str(caught.value))
    assert KERNEL in found[0]
    return [f"nv-peer-mem: {text}" for text in found]


def rows_of(text: str) -> list[Own]:
    return [one for one in rows(text) if one in POD]


def test_each_message_has_one_row(said: list[str]) -> None:
    for text in said:
        assert len(rows_of(text)) == 1, text


def test_each_row_is_a_message(said: list[str]) -> None:
    found = {one.id for text in said for one in rows_of(text)}
    assert found == {one.id for one in POD}


def test_the_program_says_what_the_test_says() -> None:
    """The texts above that no function returns stand in the program."""
    source = Path(Keeper.__module__.replace(".", "/"))
    text = (Path(__file__).resolve().parents[2] / "container" / source).with_suffix(".py")
    for words in ('f"the build: {failed}', 'f"a file cannot be read or written: {error}"'):
        assert words in text.read_text(encoding="utf-8")
