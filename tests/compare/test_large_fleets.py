# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Outputs that other nodes have made cost `nvpm compare` little time and memory, and hide no other
node. The kernel ends the program if it takes more than SECONDS of processor time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from program import PROGRAM, Said

SECONDS, MEMORY = 20, 150 << 20
SEED = int(os.environ.get("SEED", "1"))

# Runs a command within the limits, and prints its memory and its exit code. The memory of a process
# counts from before its exec, so the command must be started by a small process, not by pytest.
STARTER = f"""
import resource, subprocess, sys
def limit():
    resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
with open(sys.argv[1], "wb") as out, open(sys.argv[2], "wb") as err:
    ended = subprocess.run(sys.argv[3:], stdout=out, stderr=err, preexec_fn=limit)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, ended.returncode)
"""


def limited(tmp_path: Path, *words: str, input: "IO[bytes] | None" = None) -> Said:
    """Compares nodes within the limits."""
    out, err = tmp_path / "out", tmp_path / "err"
    said = subprocess.run(
        [sys.executable, "-c", STARTER, str(out), str(err), PROGRAM, "compare", *words],
        stdin=input,
        stdout=subprocess.PIPE,
        check=True,
    )
    memory, code = map(int, said.stdout.split())
    texts = [file.read_text(errors="surrogateescape") for file in (out, err)]
    assert "panicked" not in texts[1] and code >= 0, (code, texts[1][-2000:])
    assert memory <= MEMORY, f"{memory >> 20} MiB"
    return Said(code, *texts)


STATUS = (
    '{\n  "host": "%s",\n%s  "facts": [\n'
    '    {"id": "a/b", "section": "a", "name": "b", "value": "%s"}\n  ]\n}\n'
)
DEEP = "[" * 100_000 + "]" * 100_000
BAD_NODES = {
    "deep": STATUS % ("bad", f'  "x": {DEEP},\n', "y"),
    "deep in a fact": (STATUS % ("bad", "", "y")).replace('"name": "b"', f'"name": {DEEP}'),
    "digits": STATUS % ("n", f'  "x": {"1" * 100_000},\n', "y"),
    "exponent": STATUS % ("n", '  "x": 1e999999999,\n', "y"),
    "name of digits": STATUS % ("1" * 100_000, "", "y"),
    "name that is slow": STATUS % ("1" * 60_000 + "x1x", "", "y"),
    "name of blanks": STATUS % (" " * 60_000, "", "y"),
    "value": STATUS % ("n", "", "y" * 1_000_000),
    "no list": '{"facts": 5}\n',
    "facts that are numbers": '{\n  "facts": [\n    5\n  ]\n}\n',
    "null": STATUS % ("n", '  "ways": null, "programs": 7,\n', "y"),
    "ways": STATUS % ("n", '  "ways": [{"gpu": 1}],\n', "y"),
    "never ends": "{\n" + '  "x": "y",\n' * 1_000_000,
    "one line": "{" + " " * (20 << 20),
    "many statuses": "".join(STATUS % ("same", "", "y") for _ in range(20_000)),
}


@pytest.mark.parametrize("kind", BAD_NODES)
def test_one_bad_node(tmp_path: Path, kind: str) -> None:
    """The other nodes are compared: good3 differs from good1 and good2."""
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name in "bad1", "bad2":
        # The second bad node differs in one character, so the names of the two are compared.
        (fleet / f"{name}.json").write_text(BAD_NODES[kind].replace("1x1x", f"1x{name[-1]}x"))
    for name, value in ("good1", "y"), ("good2", "y"), ("good3", "odd"):
        (fleet / f"{name}.json").write_text(STATUS % (name, "", value))
    ended = limited(tmp_path, "--all", "--json", str(fleet))
    found = json.loads(ended.out)
    assert ended.code == 1
    odd = [group for group in found["groups"] if "good3" in group["nodes"]]
    assert [one["value"] for one in odd[0]["differences"] if one["feature"] == "a, b"] == ["odd"]
    assert max(map(len, (name for group in found["groups"] for name in group["nodes"]))) <= 260


LABELS = 500_000
NODES = {
    "names of a heading": f"-----\nn{'[0-99998]' * 200}\n-----\nx\n",
    "words of a heading": f"-----\n{'n,' * 500_000}\n-----\nx\n",
    "labels": "".join(f"a{number}: x\n" for number in range(LABELS)),
    "statuses": "".join(f'a{number}: {{"facts": []}}\n' for number in range(LABELS // 4)),
}


@pytest.mark.parametrize("kind", NODES)
def test_many_nodes_in_one_file(tmp_path: Path, kind: str) -> None:
    """A node prints the names of many nodes, in its own file. The other nodes are compared."""
    for name, value in ("good1", "y"), ("good2", "y"), ("good3", "odd"):
        (tmp_path / f"{name}.json").write_text(STATUS % (name, "", value))
    (tmp_path / "later.txt").write_text(NODES[kind])
    names = [str(tmp_path / f"{name}.json") for name in ("good1", "good2", "good3")]
    command = ("--json", *names, str(tmp_path / "later.txt"))
    ended = limited(tmp_path, *command)
    found = json.loads(ended.out)
    assert "good3" in [node for group in found["groups"] for node in group["nodes"]]
    assert ("only the first 100000 nodes are compared" in ended.err) == (kind == "statuses")


@pytest.mark.parametrize("pairs", [100, 3000])
def test_page_of_many_pairs(tmp_path: Path, pairs: int) -> None:
    """A table has a cell for each GPU and each RDMA device, also if few of the pairs were measured.
    A table of the 100 largest nodes' size is shown."""
    found = [
        {"gpu": number, "device": f"mlx5_{number}", "way": "dma-buf", "passed": True, "to_gpu": 1e9}
        for number in range(pairs)
    ]
    for name in "n1", "n2":
        said = {"schema": 1, "host": name, "bandwidth": True, "pairs": found}
        (tmp_path / f"{name}.json").write_text(json.dumps(said))
    page = tmp_path / "page.html"
    files = [str(tmp_path / f"{name}.json") for name in ("n1", "n2")]
    ended = limited(tmp_path, "--html", str(page), *files)
    assert ended.code == 0, ended.err
    text = page.read_text()
    assert len(text) < 1 << 20
    assert text.count('<td class="h') >= 100 or pairs > 100
    assert ("3000 RDMA devices and 3000 GPUs are too many" in text) == (pairs == 3000)


RATES = ("-1", "-0.0", "1e400", "1" + "0" * 400, "-" + "9" * 5000, "NaN", "Infinity", '"x"', "null")


@pytest.mark.parametrize("rate", RATES)
def test_rates_that_are_no_rates(tmp_path: Path, rate: str) -> None:
    """A rate that no device can have is no reason to pass over the rates of other nodes. The median
    of the other nodes may be 0."""
    for usual in "0", "20e9":
        for name, its in ("n1", usual), ("n2", usual), ("n3", usual), ("bad", rate):
            pair = f'{{"gpu": "0", "device": "d", "way": "w", "passed": true, "to_gpu": {its}}}'
            text = f'{{"host": "{name}", "bandwidth": true, "pairs": [{pair}]}}'
            (tmp_path / f"{name}.json").write_text(text)
        names = [str(tmp_path / f"{name}.json") for name in ("n1", "n2", "n3", "bad")]
        found = json.loads(limited(tmp_path, "--json", *names).out)
        assert not [group for group in found["groups"] if "n1" in group["nodes"]]
