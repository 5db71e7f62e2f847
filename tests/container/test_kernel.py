# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The calls of insmod, with a double of insmod."""

from pathlib import Path

import pytest

from keeper import kernel

FILES = [Path("/cache/nv_peer_mem_callback.ko"), Path("/cache/nv_peer_mem.ko")]
PARAMETERS = ["persistent_api_support=0", "peerdirect_support=1"]
CALLBACK = "insmod /cache/nv_peer_mem_callback.ko"
MODULE = "insmod /cache/nv_peer_mem.ko persistent_api_support=0 peerdirect_support=1"


@pytest.mark.parametrize(
    "loaded, calls",
    [
        ([], [CALLBACK, MODULE]),
        (["nv_peer_mem_callback"], [MODULE]),
        # Mellanox's own nv_peer_mem has this name, too. The kernel's refusal says so.
        (["nv_peer_mem_callback", "nv_peer_mem"], [MODULE]),
    ],
)
def test_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: list[str], calls: list[str]
) -> None:
    """Only the module has parameters, and only the callback module may be loaded already."""
    for name in loaded:
        (tmp_path / name).mkdir()
    called: list[str] = []
    monkeypatch.setattr(kernel, "call", lambda *words: called.append(" ".join(words)))
    kernel.load(FILES, PARAMETERS, tmp_path)
    assert called == calls


def test_refused() -> None:
    with pytest.raises(kernel.Refused, match="No such file"):
        kernel.call("ls", "/no/such/file")
