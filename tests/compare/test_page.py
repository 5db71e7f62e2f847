# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The page of `nvpm compare --html` loads nothing, can be read without colours, and contains what
nodes say only as text."""

import base64
import hashlib
import json
import re
import resource
import signal
import stat
import subprocess
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fleet import (
    Fleet,
    changed,
    fact,
    kind,
    mixed,
    printed,
    selftest,
    selftest_lines,
    status,
    with_labels,
)
from program import PROGRAM, nvpm

# A longer text from a node is cut.
LONGEST = 300
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "footer", "h1", "h2", "p", "ul"),
    *("li", "b", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "small"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "scope", "rowspan", "colspan"),
}
EMPTY = {"meta"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></table><h1>0 nodes differ</h1>",
    "' onmouseover='x",
    "&lt;b&gt;&amp;",
    "</style><style>*{display:none}",
    "\x1b[2J\0\x07",
    "\u202egnp.exe\u2066",
    "\udcff\udc80",
)


class Reader(HTMLParser):
    """Reads a page, and fails on a tag or an attribute that no page has, and on a tag that is not
    closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.words: list[str] = []
        self.headers: list[dict[str, str | None]] = []
        self.metas: list[dict[str, str | None]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS and {name for name, _ in attrs} <= ATTRIBUTES, (tag, attrs)
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "meta":
            self.metas.append(dict(attrs))
        if tag == "th":
            self.headers.append(dict(attrs))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.open[-1:] and {"th", "td"} & set(self.open):
            self.tables[-1][-1][-1] += data

    def text(self) -> str:
        return "".join(self.words)


def read(fleet: Fleet) -> tuple[Reader, str]:
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "page.html")
        assert fleet.ask("--html", str(page)).code < 2
        text = page.read_text(encoding="utf-8")
    return Reader(text), text


def test_odd_nodes_first() -> None:
    """The headline comes first, then the odd nodes with their own faults, then the kinds."""
    found = mixed(
        (20, kind(model="H100")),
        (9, kind(model="A100")),
        (1, kind(model="A100", link="16.0 GT/s x8")),
    )
    reader, text = read(found)
    places = [text.index(words) for words in ("<h1>30 nodes", "node029", "Kinds of nodes")]
    assert places == sorted(places)
    assert reader.tables[0][1] == [
        "node029 kind 2",
        "RDMA device, link",
        "16.0 GT/s x8",
        "32.0 GT/s x16",
    ]
    assert [row[:4] for row in reader.tables[1]] == [
        ["Kind", "Number", "Odd", "GPU"],
        ["kind 1", "20", "0", "H100"],
        ["kind 2", "10", "! 1", "A100"],
    ]
    assert all(header.get("scope") in ("col", "row") for header in reader.headers)
    assert text.count("<table") == text.count("<caption>") and '<html lang="en">' in text


def test_dead_and_missing_nodes() -> None:
    lines = [
        *with_labels({name: status(name) for name in ("node1", "node2")}),
        "node3: ssh: connect to host node3 port 22: No route to host",
        "node4: ssh: connect to host node4 port 22: No route to host",
    ]
    reader, text = read(Fleet(lines, "--expect", "node[1-5]"))
    assert reader.tables[0][1:] == [
        ["node[3-4]", "no status", "ssh: connect to host * port 22: No route to host"],
        ["node5", "missing", "nothing about these nodes was read"],
    ]
    assert "<b>2</b>✗ gave no status" in text and "<b>1</b>? missing" in text


def test_nothing_from_outside() -> None:
    """The browser may load nothing, and apply no style but the page's own."""
    _, text = read(mixed((3, kind())))
    style = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(style) == 1 and "url(" not in text and "//" not in text and "@import" not in text
    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert f'<meta http-equiv="Content-Security-Policy" content="{policy}">' in text
    assert "style=" not in text and "prefers-color-scheme:dark" in text and "@media print" in text


@pytest.mark.parametrize("words", HOSTILE)
def test_hostile_nodes(words: str) -> None:
    """The words of a node are only text, wherever they stand, and steer nothing."""
    said = status("node1")
    said["kernel"] = said["nvpm"] = said["host"] = words
    said["facts"] += [fact(words, words, words), fact("GPU 0000:03:00.0", "model", words)]
    changed("nvidia", words)(said)
    nodes = {f"node{at}": status(f"node{at}") for at in range(2, 6)}
    tested = {**selftest(words, 1e9, 1e9, words)}
    tested["pairs"][0].update(gpu=words, device=words, way=words)
    lines = [*with_labels(nodes), *with_labels({"1": said}), f"7: {json.dumps(tested)}"]
    reader, text = read(Fleet([*lines, f"node6: {words}"]))
    assert len([tag for tag in reader.headers if tag]) == len(reader.headers)
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\udc80-\udcff]", text)
    assert text.encode()


def test_long_words() -> None:
    """One node does not fill the page."""
    said = status("node1")
    changed("nvidia", "x" * 1000000)(said)
    nodes = {"n" * 250: said, **{f"n{at}": status("n") for at in range(3)}}
    _, text = read(Fleet(with_labels(nodes)))
    assert "x" * LONGEST in text and "x" * (LONGEST + 1) not in text and len(text) < 20000


def test_many_odd_nodes() -> None:
    """A page has a limit, and says what it leaves out."""
    changes = [(1, kind(link=f"{at} GT/s")) for at in range(500)]
    reader, text = read(mixed((600, kind()), *changes))
    assert "And 300 more groups: nvpm compare --all" in reader.text() and len(text) < 100000


def rated(node: str, rates: dict[str, float], failed: str = "") -> dict[str, Any]:
    """Returns the result of a selftest with one GPU and a device for each rate."""
    said = selftest(node, 1, 1)
    pair = said["pairs"][0]
    said["pairs"] = [
        {**pair, "device": device, "to_gpu": int(rate), "from_gpu": int(rate) - 1, "passed": True}
        for device, rate in rates.items()
    ]
    for one in said["pairs"]:
        if one["device"] == failed:
            one.update(passed=False, failure="x", to_gpu=None, from_gpu=None)
    return said


def test_heat_map_of_a_fleet() -> None:
    """A cell has the median of the nodes. If a node is slow or fails, the cell also names that
    node. No level is told by the colour alone."""
    usual = {"mlx5_0": 40e9, "mlx5_9": 40e9, "mlx5_10": 40e9}
    results = {f"n{at}": rated(f"n{at}", usual) for at in range(7)}
    results["n2"] = rated("n2", {**usual, "mlx5_9": 12e9})
    results["n5"] = rated("n5", usual, "mlx5_10")
    lines = with_labels({name: status(name) for name in results}) + selftest_lines(results)
    reader, text = read(Fleet(lines))
    assert reader.tables[-1] == [
        ["RDMA device", "GPU 0"],
        ["mlx5_0", "40.0"],
        ["mlx5_9", "▼▼ 40.012.0 n2"],
        ["mlx5_10", "▼▼▼ 40.0FAILED n5"],
    ]
    assert '<td class="h3">▼▼ 40.0<small>12.0 n2</small></td>' in text


@pytest.mark.parametrize(
    ("share", "begin"),
    [
        (1.0, '<td class="h0">40.0'),
        (0.96, '<td class="h0">40.0'),
        (0.94, '<td class="h1">40.0'),
        (0.79, '<td class="h2">▼ 40.0'),
        (0.51, '<td class="h2">▼ 40.0'),
        (0.3, '<td class="h3">▼▼ 40.0'),
        (0.1, '<td class="h4">▼▼▼ 40.0'),
    ],
)
def test_levels(share: float, begin: str) -> None:
    results = {f"n{at}": rated(f"n{at}", {"mlx5_0": 40e9}) for at in range(5)}
    results["n3"] = rated("n3", {"mlx5_0": 40e9 * share})
    _, text = read(Fleet(selftest_lines(results)))
    assert begin in text.partition("<tbody>\n")[2].rpartition('<table class="heat"')[2]


# ---- the file ------------------------------------------------------------------------------------


def files(tmp_path: Path) -> list[str]:
    for at in range(3):
        (tmp_path / f"n{at}.json").write_text("\n".join(printed(status(f"n{at}"))))
    return [str(tmp_path / f"n{at}.json") for at in range(3)]


def test_page_is_a_new_file(tmp_path: Path) -> None:
    """The page is a new file that only its owner can read. Neither a file nor the target of a link
    is overwritten."""
    paths, new = files(tmp_path), tmp_path / "page.html"
    said = nvpm("compare", "--html", new, "--json", *paths)
    assert said.code == 0 and json.loads(said.out)["nodes"] == 3
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    Reader(new.read_text(encoding="utf-8"))
    old, link, target = new.read_bytes(), tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for path in new, link, tmp_path / "nowhere/page.html":
        said = nvpm("compare", "--html", path, *paths)
        assert said.code == 2 and not said.out
        assert f"nvpm compare: {path} cannot be written: " in said.err
    assert new.read_bytes() == old and not target.exists()


def test_no_page_of_nothing(tmp_path: Path) -> None:
    """If there is nothing to compare, no empty file stays."""
    (tmp_path / "n.json").write_text("bash: nvpm: not found\n")
    new = tmp_path / "page.html"
    assert nvpm("compare", "--html", new, tmp_path / "n.json").code == 2
    assert not new.exists()


def test_full_disk(tmp_path: Path) -> None:
    """A page that cannot be written completely does not stay, and a result that cannot be printed
    is no success."""
    paths, page = files(tmp_path), tmp_path / "page.html"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    ended = subprocess.run(
        [PROGRAM, "compare", "--html", page, *paths],
        preexec_fn=limit,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 2 and b"page.html cannot be written: " in ended.stderr
    assert not page.exists()
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [PROGRAM, "compare", *paths], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ended.returncode == 2 and b"cannot be written" in ended.stderr
