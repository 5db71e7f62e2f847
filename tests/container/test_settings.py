# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The settings of the container's environment, and the result of a build as text."""

import re
import shutil
from pathlib import Path

import pytest

from keeper import build
from keeper.settings import Settings, Wrong, settings

TOP = Path(__file__).resolve().parents[2]


def test_defaults() -> None:
    text = (TOP / "dkms.conf").read_text(encoding="utf-8")
    plain = text.partition('PACKAGE_VERSION="')[2].partition('"')[0]
    version = settings({}, TOP).version
    assert re.fullmatch(re.escape(plain) + r"\+[0-9a-f]{12}", version)
    assert settings({}, TOP) == Settings("nvidia_peermem", [], 9989, version)
    chosen = {
        "NVPM_NAME": "nv_peer_mem",
        "NVPM_PARAMETERS": " persistent_api_support=0  peerdirect_support=1",
        "NVPM_METRICS_PORT": "0",
    }
    both = ["persistent_api_support=0", "peerdirect_support=1"]
    assert settings(chosen, TOP) == Settings("nv_peer_mem", both, 0, version)


def copy_release(to: Path) -> None:
    """Copies the files of a release that decide about settings."""
    for name in ("build", "src"):
        shutil.copytree(TOP / name, to / name)
    for name in ("Kbuild", "dkms.conf"):
        shutil.copy(TOP / name, to)


def test_two_images_of_one_version(tmp_path: Path) -> None:
    """The sources decide what the cache keeps, and whether a loaded module is current."""
    copy_release(tmp_path)
    same = settings({}, tmp_path).version
    assert same == settings({}, TOP).version
    with (tmp_path / "src/lib.c").open("w", encoding="utf-8") as file:
        file.write("int mended;\n")
    assert settings({}, tmp_path).version != same


def test_a_parameter_of_the_release(tmp_path: Path) -> None:
    """The module's source decides which parameters there are."""
    copy_release(tmp_path)
    with (tmp_path / "src/c/module.c").open("a", encoding="utf-8") as file:
        file.write("module_param_cb(longer, &nvpm_switch, &nvpm_longer, 0444);\n")
    chosen = {"NVPM_PARAMETERS": "longer=1"}
    assert settings(chosen, tmp_path).parameters == ["longer=1"]
    with pytest.raises(Wrong, match="persistent_api_support=0 or 1, separated"):
        settings(chosen, TOP)


@pytest.mark.parametrize(
    "setting",
    [
        ("NVPM_NAME", "nvidia-peermem"),
        ("NVPM_PARAMETERS", "persistent_api_support=2"),
        ("NVPM_PARAMETERS", "persistent_api_support"),
        ("NVPM_PARAMETERS", "peerdirect_support=1;x"),
        ("NVPM_METRICS_PORT", "65536"),
        ("NVPM_METRICS_PORT", "-1"),
        ("NVPM_METRICS_PORT", "http"),
    ],
)
def test_wrong_settings(setting: tuple[str, str]) -> None:
    with pytest.raises(Wrong, match=setting[0]):
        settings(dict([setting]), TOP)


@pytest.mark.parametrize(
    "log, said",
    [
        ("a\nnv_peer_mem: pahole is missing\nmake: *** [Makefile:40: modules] Error 1\n", "pahole"),
        ("x.c:1: error: first\nx.c:2: error: second\nmake: *** Error 1\n", "x.c:1: error: first"),
        ("x\n", "make has ended with 2"),
    ],
)
def test_the_reason_of_a_failed_build(log: str, said: str) -> None:
    assert said in build.reason(log, 2)
