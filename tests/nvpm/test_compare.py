# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm compare finds the odd nodes of a fleet. It reads the output of each tool that collects the
status of nodes."""

import argparse
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nvpm.compare.as_json import as_json
from nvpm.compare.features import features
from nvpm.compare.fleet import Fleet
from nvpm.compare.groups import groups_of, modes_of
from nvpm.compare.inputs import Node, from_lines, from_paths
from nvpm.compare.main import expected
from nvpm.compare.names import NotNames, folded, unfolded
from nvpm.compare.text import HEIGHT, WIDTH, as_text

Status = dict[str, Any]


def fact(section: str, name: str, value: str, verdict: str = "good") -> dict[str, str]:
    words = f"{section}/{name}".lower().replace(" ", "_")
    return {"id": words, "section": section, "name": name, "verdict": verdict, "value": value}


def status(host: str) -> Status:
    return {
        "schema": 2,
        "host": host,
        "kernel": "6.8.0-45-generic",
        "time": f"2026-11-26T03:00:{len(host):02}Z",
        "ways": [{"gpu": "0000:03:00.0", "device": "mlx5_0", "ways": ["nv_peer_mem"]}],
        "programs": {"NCCL, newer": "nv_peer_mem"},
        "facts": [
            fact("driver", "nvidia", "loaded, version 590.48.01"),
            fact(
                "GPU 0000:03:00.0", "link", "2.5 GT/s x16, can 32 GT/s: GPUs are slower when idle"
            ),
            fact("GPU 0000:43:00.0", "link", "32.0 GT/s x16"),
            fact("GPU 0000:03:00.0", "BAR1", "128 GiB"),
            fact("GPU 0000:43:00.0", "BAR1", "128 GiB"),
            fact("RDMA device mlx5_0", "link", "32.0 GT/s x16"),
            fact("use", "registrations", str(len(host) * 7)),
            fact("use", "failed_driver", "0"),
            fact("use", "orphans", "0"),
        ],
    }


def printed(said: Status) -> list[str]:
    """Returns the lines in which nvpm prints a status."""
    head = [f"  {json.dumps(key)}: {json.dumps(said[key])}," for key in said if key != "facts"]
    pairs = [f"    {json.dumps(pair)}" for pair in said["ways"]]
    head[list(said).index("ways")] = "\n".join(['  "ways": [', ",\n".join(pairs), "  ],"])
    head = "\n".join(head).split("\n")
    facts = ",\n".join(f"    {json.dumps(one)}" for one in said["facts"]).split("\n")
    return ["{", *head, '  "facts": [', *facts, "  ]", "}"]


def with_labels(nodes: dict[str, Status], form: str = "{}: {}") -> list[str]:
    return [form.format(name, line) for name, said in nodes.items() for line in printed(said)]


def numbered(nodes: dict[str, Status]) -> list[str]:
    """Returns the lines in the form of srun --label. The lines of two tasks are mixed."""
    columns = [
        [f"{number:>2}: {line}" for line in printed(said)]
        for number, said in enumerate(nodes.values())
    ]
    return [line for lines in zip(*columns, strict=True) for line in lines]


def in_groups(nodes: dict[str, Status]) -> list[str]:
    rule = "-" * 15
    return [line for name, said in nodes.items() for line in (rule, name, rule, *printed(said), "")]


def by_ansible(nodes: dict[str, Status]) -> list[str]:
    lines = []
    for number, (name, said) in enumerate(nodes.items()):
        text = printed(said)
        if number % 2:
            text[-1] += "non-zero return code"
        how = "FAILED | rc=3 >>" if number % 2 else "CHANGED | rc=0 >>"
        if number % 2:
            lines += [
                "[ERROR]: Task failed: non-zero return code",
                "Origin: <adhoc 'raw' task>",
                "",
            ]
        lines += [f"{name} | {how}", *text]
    return lines


def by_module(nodes: dict[str, Status]) -> list[str]:
    """Returns the lines in which Ansible prints the result of a module. The result contains the
    output of nvpm."""
    lines = []
    for name, said in nodes.items():
        result = {"changed": True, "rc": 0, "stdout": "\n".join(printed(said))}
        lines += [f"{name} | SUCCESS => {line}" for line in json.dumps(result).split("\n")]
    return lines


FORMS: dict[str, Callable[[dict[str, Status]], list[str]]] = {
    "pdsh, clush": with_labels,
    "without a blank": lambda nodes: with_labels(nodes, "{}:{}"),
    "srun --label": numbered,
    "clush -b": in_groups,
    "ansible": by_ansible,
    "ansible, a module's result": by_module,
    "one after the other": lambda nodes: [
        line for said in nodes.values() for line in printed(said)
    ],
    "on one line each": lambda nodes: [json.dumps(said) for said in nodes.values()],
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    """Each form gives the same nodes, with the same facts."""
    nodes = {name: status(f"{name}-by-itself") for name in ("node1", "node2", "gpu-a.example")}
    found = list(from_lines(line + "\n" for line in FORMS[form](nodes)))
    own_names = form in ("srun --label", "one after the other", "on one line each")
    names = [said["host"] for said in nodes.values()] if own_names else list(nodes)
    assert [node.name for node in found] == names
    assert [node.status for node in found] == list(nodes.values())


HERE = Path(__file__).resolve().parent
# The output of real tools (pdsh 2.34, ClusterShell 1.9, dshbak, Ansible core 2.19, Slurm 22.05).
# The tools ran nvpm on several nodes, and some of the nodes were dead.
TOLD = {
    **dict.fromkeys(
        ("pdsh", "clush", "clush_b", "clush_B", "dshbak"),
        {
            "node2": "No route to host",
            "node3": "nvpm: command not found",
            "node6": "sudo: a password is required",
            "node8": "nvpm: command not found",
            "node9": "nvpm: command not found",
        },
    ),
    **dict.fromkeys(
        ("ansible_command", "ansible_shell", "ansible_raw"),
        {
            "node2": "No route to host",
            "node3": "",
            "node6": "sudo: a password is required",
            "node8": "",
            "node9": "",
        },
    ),
    **dict.fromkeys(("pdsh_timeout", "clush_timeout"), {"node7": "command timeout"}),
    "srun": {"node2": "No such file or directory", "node3": "sudo: a password is required"},
    "srun_node_failure": {"node2": "Node failure"},
}
LIVING = {
    **dict.fromkeys(("pdsh_timeout", "clush_timeout"), {"node1"}),
    "srun": {"node1", "node4"},
    "srun_node_failure": {"node1", "node3", "node4"},
}


@pytest.mark.parametrize("tool", TOLD)
def test_what_tools_deliver(tool: str) -> None:
    """Each node is one node, under its own name and with its own words, whether it is dead or
    not. srun --label cuts the long lines of a status."""
    with (HERE / f"collected/{tool}.txt").open(encoding="utf-8") as lines:
        found = list(from_lines(lines))
    dead = {node.name: node.words for node in found if node.status is None}
    assert {node.name for node in found if node.status} == LIVING.get(
        tool, {"node1", "node4", "node5"}
    )
    assert set(dead) == set(TOLD[tool]) and len(found) == len({node.name for node in found})
    for name, words in TOLD[tool].items():
        assert words in dead[name] and "non-zero return code" not in dead[name], dead[name]
    if tool.startswith("srun"):
        pairs = [node.status["ways"] for node in found if node.status]
        assert all(isinstance(one, list) and len(one) == 96 for one in pairs)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node[1-3,7],gpu7", ["node1", "node2", "node3", "node7", "gpu7"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("r[1-2]n[3-4].x", ["r1n3.x", "r1n4.x", "r2n3.x", "r2n4.x"]),
        ("a, b,", ["a", "b"]),
    ],
)
def test_unfolded(text: str, names: list[str]) -> None:
    assert unfolded(text) == names


@pytest.mark.parametrize("text", ["n[5-1]", "n[", "n[a]", "n[0-999999999999]", "r[1-900]n[1-900]"])
def test_no_names(text: str) -> None:
    """No list of names fills memory."""
    with pytest.raises(NotNames):
        unfolded(text)


def test_headings_of_a_node() -> None:
    """A node that prints headings with many nodes does not fill memory."""
    rule = "-" * 16
    lines = [rule, "node1", rule, *printed(status("node1"))]
    for at in range(50):
        lines += [rule, f"x{at}-[1-90000]", rule, "words"]
        lines += [f"clush: y{at}-[1-90000] (90000): exited with exit code 1"]
    found = list(from_lines(lines))
    assert found[0].name == "node1" and len(found) < 200100


def test_addresses() -> None:
    """The first part of an address is no name of a host, but the first part of a domain name is."""
    lines = [
        *with_labels({"10.0.0.1": status("a"), "node2.example": status("b")}),
        "clush: 10.0.0.5: command timeout",
        "clush: node2: exited with exit code 3",
    ]
    found = {node.name: node.words for node in from_lines(lines)}
    assert found == {"10.0.0.1": "", "node2.example": "", "10.0.0.5": "command timeout"}


def test_files(tmp_path: Path) -> None:
    """A directory has a file for each node. Some of the nodes have failed."""
    for name in ("node1", "node2"):
        (tmp_path / f"{name}.json").write_text("\n".join(printed(status(name))))
    (tmp_path / "node3.json").write_text("bash: nvpm: command not found\n")
    (tmp_path / "node4.txt").write_text("")
    (tmp_path / ".hidden").write_text("x")
    found = list(from_paths([str(tmp_path)]))
    assert [node.name for node in found] == ["node1", "node2", "node3", "node4"]
    assert found[2].words == "bash: nvpm: command not found" and found[3].status is None


def unchanged(_said: Status) -> None:
    """Changes nothing."""


def fleet(count: int, **changes: Callable[[Status], None]) -> Fleet:
    """Makes a fleet. CHANGES has functions that change a status, by the name of the node."""
    nodes = []
    for number in range(count):
        name = f"node{number:03}"
        said = status(name)
        changes.get(name, unchanged)(said)
        nodes.append(Node(name, said))
    return Fleet(iter(nodes))


def changed(name: str, value: str, at: int = 0) -> Callable[[Status], None]:
    def change(said: Status) -> None:
        [one for one in said["facts"] if one["name"] == name][at]["value"] = value

    return change


def test_equal_nodes() -> None:
    """Counters, times, and the speed of an idle GPU's link differ between equal nodes."""
    found = fleet(
        9, node003=changed("link", "32.0 GT/s x16"), node004=changed("registrations", "9")
    )
    assert found.alike == 9 and not found.odd
    assert next(as_text(found, False)) == "9 nodes: 9 are alike."


def test_odd_nodes() -> None:
    """nvpm prints the odd nodes first, with their value, the device, and the value of the other
    nodes."""
    found = fleet(
        200,
        node017=changed("BAR1", "256 MiB", 1),
        node100=changed("nvidia", "loaded, version 580.95"),
        node101=changed("nvidia", "loaded, version 580.95"),
        node150=lambda said: said.update(kernel="6.5.0-1-generic"),
        node199=changed("failed_driver", "3"),
        node198=changed("orphans", "7"),
    )
    lines = list(as_text(found, False))
    text = "\n".join(lines)
    assert lines[0] == "200 nodes: 194 are alike, 6 differ, in 5 ways."
    assert (
        "node017       GPU, BAR1: 1 x 128 GiB; 1 x 256 MiB (0000:43:00.0); the others 2 x" in text
    )
    assert "node[100-101]" in text and "2 nodes: driver, nvidia: loaded, version 580.95" in text
    assert "node199       use, failed_driver: not 0; the others 0" in text
    assert "node198       use, orphans: not 0; the others 0" in text
    places = [text.index(name) for name in ("node017", "node150", "node199", "node[100-101]")]
    assert places == sorted(places) and places[-1] < text.index("most nodes")
    assert json.loads(as_json(found))["groups"][0]["nodes"] == ["node017"]


def test_two_nodes() -> None:
    """If there are two nodes, one node is the norm. The cause of the difference comes before its
    consequences."""

    def without_module(said: Status) -> None:
        changed("BAR1", "256 MiB")(said)
        said["programs"] = {}
        said["ways"][0]["ways"] = []
        said["facts"].insert(0, fact("security", "module signed by", "nobody"))
        said["facts"].append(fact("module", "state", "not loaded"))

    def with_module(said: Status) -> None:
        said["facts"].append(fact("module", "state", "loaded"))

    found = fleet(2, node000=with_module, node001=without_module)
    assert (found.alike, len(found.odd)) == (1, 1)
    names = [name for name, _ in found.odd[0].differences]
    assert names == [
        "GPU, BAR1",
        "module, state",
        "ways",
        "security, module signed by",
        "program NCCL, newer",
    ]


@pytest.mark.parametrize("bad", [("node000", "node001"), ("node003", "node004")])
def test_groups_of_the_same_size(bad: tuple[str, str]) -> None:
    """If two groups have the same size, the group that is more like all nodes is the norm,
    whichever group comes first. In this fleet, two of five nodes have failures, and a third node
    has less memory in BAR1."""

    def other(said: Status) -> None:
        changed("orphans", "1")(said)
        changed("failed_driver", "3")(said)

    changes = {"node002": changed("BAR1", "64 GiB"), **dict.fromkeys(bad, other)}
    found = fleet(5, **changes)
    assert found.alike == 2
    by_nodes = {tuple(group.nodes): group.differences for group in found.odd}
    assert set(by_nodes) == {bad, ("node002",)}
    assert ("use, failed_driver", "not 0") in by_nodes[bad]


def test_most_frequent_value() -> None:
    """If half of the nodes lack a feature, the feature's value counts as the usual one. If most
    nodes lack a feature, the feature is unusual."""
    assert modes_of({"a": {"x": "1"}, "b": {}}) == {"x": "1"}
    assert modes_of({"a": {"x": "1"}, "b": {}, "c": {}}) == {"x": "not there"}
    assert modes_of({"a": {"x": "1"}, "b": {"x": "2"}, "c": {"x": "2"}}) == {"x": "2"}


def test_order_of_groups() -> None:
    """The smallest group comes first. If two groups have the same size, the group whose first node
    has the lower name comes first."""
    nodes = {"d": {"x": "1", "y": "1"}, "c": {"x": "2", "y": "0"}, "a": {}, "b": {}}
    nodes.update(e={"x": "0", "y": "0"}, f={"x": "0", "y": "0"}, g={"x": "0", "y": "0"})
    found = groups_of(nodes, {"x": "0", "y": "0"})
    assert [group.nodes for group in found] == [["c"], ["d"], ["a", "b"], ["e", "f", "g"]]


def test_values_of_several_devices() -> None:
    """The most frequent value comes first. After each of the other values stand the names of the
    devices. If two values are equally frequent, the first in the alphabet comes first."""

    def value(sizes: str) -> str:
        facts = [fact(f"GPU 0000:{at}3:00.0", "BAR1", size) for at, size in enumerate(sizes)]
        return features({"facts": facts})["GPU, BAR1"]

    assert value("a") == "a"
    assert value("baa") == "2 x a; 1 x b (0000:03:00.0)"
    assert value("bbab") == "3 x b; 1 x a (0000:23:00.0)"
    assert value("bbaa") == "2 x a; 2 x b (0000:03:00.0, 0000:13:00.0)"
    assert value("cabbb") == "3 x b; 1 x a (0000:13:00.0); 1 x c (0000:03:00.0)"
    assert value("bbbbbaaaaaa").endswith(
        "5 x b (0000:03:00.0, 0000:13:00.0, 0000:23:00.0, 0000:33:00.0)"
    )


def test_links_of_gpus() -> None:
    """The speed of an idle GPU's link is no feature. The width of the link and a slow slot are
    features."""
    idle = "2.5 GT/s x16, can 32 GT/s: GPUs are slower when idle"
    for link, value in (
        (idle, "x16"),
        ("32.0 GT/s x8", "x8"),
        ("8.0 GT/s x16: both ends can 32 GT/s", "8.0 GT/s x16: both ends can 32 GT/s"),
    ):
        assert features({"facts": [fact("GPU 0000:03:00.0", "link", link)]})["GPU, link"] == value
    nic = fact("RDMA device mlx5_0", "link", "16.0 GT/s x16")
    assert features({"facts": [nic]})["RDMA device, link"] == "16.0 GT/s x16"


def test_several_ways() -> None:
    """A second way that a node lacks is a difference."""

    def ways(*names: str) -> str:
        pair = {"gpu": "0000:03:00.0", "device": "mlx5_0", "ways": list(names)}
        return features({"ways": [pair]})["ways"]

    assert ways("nv_peer_mem", "dma-buf") == "nv_peer_mem and dma-buf"
    assert ways() == "no way"


def test_one_screen() -> None:
    """If a fleet has many odd nodes, the output fits on one screen and says how to see the
    others."""
    changes = {f"node{i:03}": changed("BAR1", f"{i} MiB") for i in range(40)}
    found = fleet(100, **changes)
    lines = list(as_text(found, False))
    assert len(lines) <= HEIGHT and max(map(len, lines)) <= WIDTH
    assert any("more groups: nvpm compare --all" in line for line in lines)
    assert len(list(as_text(found, True))) > HEIGHT


def test_silent_nodes() -> None:
    """Nodes that gave no status are part of the fleet, and come first."""
    lines = [
        *with_labels({"node1": status("node1"), "node2": status("node2")}),
        "node3: ssh: connect to host node3 port 22: No route to host",
        "node4: bash: line 1: nvpm: command not found",
        "node5: {",
        'node5:   "schema": 2,',
    ]
    text = list(as_text(Fleet(from_lines(lines)), False))
    assert text[0] == "5 nodes: 2 are alike, 3 gave no status."
    assert text[1].startswith("node3") and "No route to host" in text[1]
    assert "node5         no status: the status is cut off" in text


def test_messages_beside_a_status() -> None:
    """Messages of a login are no nodes, and rules around them hide no status. A collector's own
    messages are no nodes either."""
    login = ["Warning: authorised users only", "-" * 20, *printed(status("node1"))]
    assert [node.name for node in from_lines(login)] == ["node1"]
    lines = ["srun: job 5 queued", *with_labels({"node1": status("node1")})]
    assert [node.name for node in from_lines(lines)] == ["node1"]


def test_signers() -> None:
    """The name of the key that signs modules on Ubuntu contains the host's name. This is no
    difference between nodes."""

    def signed(said: Status) -> None:
        signer = f"{said['host']} Secure Boot Module Signature key"
        said["facts"].append(fact("security", "module signed by", signer))

    found = fleet(5, **{f"node{number:03}": signed for number in range(5)})
    assert found.alike == 5


@pytest.mark.parametrize(
    "text",
    [
        '{"facts": [1]}',
        '{"facts": "abc"}',
        '{"facts": [], "ways": [1]}',
        '{"facts": [], "programs": [1]}',
        '{"pairs": [{"gpu": 1}], "absent": 1}',
        '{"pairs": [1]}',
        '{"a":' * 100000 + "}",
    ],
)
def test_other_forms(text: str) -> None:
    """JSON in another form hides no other node."""
    lines = [f"node0: {text}", *with_labels({"node1": status("node1")})]
    found = Fleet(from_lines(lines))
    assert "node1" in found.nodes
    assert [node.name for node in found.silent] in (["node0"], [])


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "node1.json").write_text("\n".join(printed(status("node1"))), "utf-8-sig")
    assert [bool(node.status) for node in from_paths([str(tmp_path)])] == [True]


def test_same_names() -> None:
    """Two nodes may have the same name. Both of them must count."""
    lines = [*printed(status("localhost")), *printed(status("localhost"))]
    assert list(Fleet(from_lines(lines)).nodes) == ["localhost", "localhost#2"]


def test_harmful_text() -> None:
    """The words of a node steer no terminal."""
    said = status("node1")
    changed("nvidia", "\033[2J\033]0;x\007")(said)
    found = Fleet(iter([Node("node1", said), Node("\033node2", None, "\033[0m")]))
    assert "\033" not in "".join(found.nodes) + "".join(node.words for node in found.silent)


def selftest(host: str, to_gpu: float, from_gpu: float, failure: str | None = None) -> Status:
    """Returns the output of `nvpm selftest --bandwidth --json` on a node with one pair."""
    pair = {"gpu": 0, "device": "mlx5_0", "way": "pointer", "passed": failure is None}
    pair.update(failure=failure, to_gpu=int(to_gpu), from_gpu=int(from_gpu))
    return {"schema": 1, "host": host, "bandwidth": True, "pairs": [pair], "absent": []}


def selftest_lines(results: dict[str, Status]) -> list[str]:
    return [
        f"{name}: {line}"
        for name, said in results.items()
        for line in json.dumps(said, indent=2, sort_keys=True).split("\n")
    ]


def test_selftests() -> None:
    """The results of selftests join the statuses of the same nodes. Small differences of rates do
    not count; a slow direction and a failed pair do."""
    names = [f"node{number}" for number in range(9)]
    results = {name: selftest(name, 24e9 + at * 1e8, 20e9) for at, name in enumerate(names)}
    results["node3"] = selftest("node3", 24e9, 5e9)
    results["node5"] = selftest("node5", 24e9, 20e9, "the RDMA write ended with x")
    lines = [*with_labels({name: status(name) for name in names}), *selftest_lines(results)]
    found = Fleet(from_lines(lines))
    assert (len(found.nodes), found.alike, len(found.odd)) == (9, 7, 2)
    text = "\n".join(as_text(found, False))
    assert "selftest, GPU 0 with mlx5_0 by pointer, from the GPU: 25 % of the usual rate" in text
    assert "the others about 20 GB/s" in " ".join(text.split())
    assert "by pointer: failed: the RDMA write ended with x; the others passed" in " ".join(
        text.split()
    )


def test_selftests_alone() -> None:
    """nvpm compare also reads selftests without statuses, and single transfers give no rates."""
    once = {name: selftest(name, 1e9 * at, 1e9) for at, name in enumerate(("a", "b", "c"), 1)}
    for said in once.values():
        del said["bandwidth"]
    once["d"] = {"schema": 1, "host": "d", "pairs": [], "absent": [{"what": "no GPU"}]}
    found = Fleet(from_lines(selftest_lines(once)))
    assert found.alike == 3 and found.nodes["d"] == {"selftest": "no GPU"}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["node1", "node2", "node3", "node7"], "node[1-3,7]"),
        (["n008", "n009", "n010"], "n[008-010]"),
        (["n8", "n9", "n10"], "n[8-9,10]"),
        (["a", "b-1", "b-2"], "a,b-[1-2]"),
        (["n10", "n9", "n011", "n2", "n1"], "n[1-2,9,10,011]"),
        (["n1", "n01", "n02", "n2"], "n[1-2,01-02]"),
        (["gpu1.x", "gpu2.x"], "gpu[1-2].x"),
    ],
)
def test_folded(names: list[str], text: str) -> None:
    assert folded(names) == text


def test_cannot_compare(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from nvpm.compare.main import main
    from nvpm.read.machine import Machine

    monkeypatch.setattr("sys.stdin", io.StringIO("node1: nvpm: not found\n"))
    assert main(Machine(), []) == 2
    assert "The first node said: nvpm: not found" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(Machine(), ["/nonexistent"])
    assert ended.value.code == 2


# ---- kinds of nodes ------------------------------------------------------------------------------


def kind(**facts: str) -> Callable[[Status], None]:
    """Returns a function that changes a status to that of another kind of node."""

    def change(said: Status) -> None:
        said["kernel"] = facts.get("kernel", said["kernel"])
        said["nvpm"] = facts.get("nvpm", "2.0.0 (commit 0123456789ab)")
        if "model" in facts:
            said["facts"].insert(0, fact("GPU 0000:03:00.0", "model", facts["model"]))
        if "driver" in facts:
            verdict = "good" if "version" in facts["driver"] else "bad"
            changed("nvidia", facts["driver"])(said)
            next(one for one in said["facts"] if one["name"] == "nvidia")["verdict"] = verdict
        if "link" in facts:
            changed("link", facts["link"], -1)(said)

    return change


OLD, NEW = "6.1.0", "6.8.0"


def mixed(*kinds: tuple[int, Callable[[Status], None]]) -> Fleet:
    """Makes a fleet with so many nodes of each kind."""
    changes = [change for count, change in kinds for _ in range(count)]
    return fleet(len(changes), **{f"node{at:03}": change for at, change in enumerate(changes)})


def test_odd_node_of_a_small_kind() -> None:
    """The odd node of a smaller kind is named with its own fault."""
    with (HERE / "collected/two_kinds.txt").open(encoding="utf-8") as lines:
        found = Fleet(from_lines(lines))
    assert [(len(one.nodes), len(one.alike())) for one in found.kinds] == [(10, 10), (10, 9)]
    assert [(group.nodes, group.differences) for group in found.odd] == [
        (["b9"], [("RDMA device, link", "16.0 GT/s x8")])
    ]
    text = list(as_text(found, False))
    assert text[0] == "20 nodes of 2 kinds: 19 are alike within their kind, 1 differs, in 1 way."
    assert text[1] == "2 kinds of 10 nodes:" and text[4].startswith("b9 ")


def test_twelve_kinds() -> None:
    kinds = [(20, kind(kernel=f"6.{at}.0")) for at in range(12)]
    kinds[7] = (19, kind(kernel="6.7.0"))
    found = mixed(*kinds, (1, kind(kernel="6.7.0", link="16.0 GT/s x8")))
    text = list(as_text(found, False))
    assert (len(found.nodes), found.alike) == (240, 239)
    assert text[1] == "12 kinds of 20 nodes:" and len(text) <= HEIGHT
    assert text[-1].startswith("node239       RDMA device, link: 16.0 GT/s x8; the others of kind")


def test_halves_of_an_update() -> None:
    """Two halves that differ only in the kernel are two kinds, and no node is odd."""
    found = mixed((10, kind(kernel=OLD)), (10, kind(kernel=NEW)))
    assert not found.odd and found.alike == 20
    text = " ".join("\n".join(as_text(found, False)).split())
    assert "kernel 6.8.0 (no other difference from kind 1)" in text


def test_a_few_that_an_update_left_out() -> None:
    """A few nodes with another kernel are no kind. They are odd, each with its own faults."""
    found = mixed(
        (58, kind(kernel=NEW)), (4, kind(kernel=OLD)), (1, kind(kernel=OLD, link="16.0 GT/s x8"))
    )
    assert len(found.kinds) == 1 and found.alike == 58
    assert [len(group.nodes) for group in found.odd] == [1, 4]


def test_a_kind_of_one_node() -> None:
    """A single node with another GPU is odd. Two such nodes are a kind."""
    one = mixed((9, kind(model="H100")), (1, kind(model="A100")))
    two = mixed((9, kind(model="H100")), (2, kind(model="A100")))
    assert (len(one.kinds), len(one.odd)) == (1, 1)
    assert one.odd[0].differences == [("GPU, model", "A100")]
    assert (len(two.kinds), len(two.odd)) == (2, 0)


def test_a_fault_makes_no_kind() -> None:
    """Nodes whose driver is not loaded are odd, although there are many of them and the driver
    decides the kind. A few nodes that have lost all GPUs are odd, too."""
    found = mixed((12, kind()), (8, kind(driver="not loaded")))
    assert (len(found.kinds), found.alike) == (1, 12)

    def without_gpus(said: Status) -> None:
        said["facts"] = [one for one in said["facts"] if not one["section"].startswith("GPU")]

    found = mixed((38, kind(model="H100")), (2, without_gpus))
    assert (len(found.kinds), found.alike) == (1, 38)


def test_nearest_larger_group() -> None:
    """A node that differs in much from most nodes, and in little from a larger group, is compared
    with that group."""

    def half(link: str) -> Callable[[Status], None]:
        def change(said: Status) -> None:
            kind(link=link)(said)
            for at in range(5):
                said["facts"].append(fact("access", f"x{at}", "no"))

        return change

    found = mixed((20, kind()), (7, half("32.0 GT/s x16")), (1, half("16.0 GT/s x8")))
    group = found.odd[0]
    assert group.nodes == ["node027"] and len(group.like) == 7
    assert group.differences == [("RDMA device, link", "16.0 GT/s x8")]
    text = " ".join("\n".join(as_text(found, False)).split())
    assert (
        "as 7 nodes that differ, too (node[020-026]), but RDMA device, link: 16.0 GT/s x8" in text
    )


def test_rates_are_compared_within_a_kind() -> None:
    """A rate is compared with the median of the node's own kind."""
    lines = []
    for at in range(20):
        name = f"n{at}"
        said = status(name)
        kind(model="H100" if at < 12 else "A100")(said)
        lines += with_labels({name: said})
        rate = 48e9 if at < 12 else 24e9
        lines += selftest_lines({name: selftest(name, rate, rate)})
    found = Fleet(from_lines(lines))
    name = "selftest, GPU 0 with mlx5_0 by pointer, to the GPU"
    assert not found.odd
    assert [kind.norm[name] for kind in found.kinds] == ["about 48 GB/s", "about 24 GB/s"]


# ---- versions of nvpm ----------------------------------------------------------------------------


def test_another_nvpm() -> None:
    """Different words of another version of nvpm are no difference between nodes. Different numbers
    and verdicts are differences."""

    def older(said: Status) -> None:
        said["nvpm"] = "2.0.0 (commit 82b7a1d00000)"
        changed("registrations", "0")(said)
        changed("BAR1", "128 GiB of memory")(said)
        said["facts"].append(fact("module", "on boot", "not read: only root may", "none"))

    def slow(said: Status) -> None:
        older(said)
        changed("link", "16.0 GT/s x16", -1)(said)

    def broken(said: Status) -> None:
        older(said)
        said["facts"][0].update(value="away", verdict="bad")

    found = mixed((17, kind()), (3, older), (1, slow), (1, broken))
    assert [group.nodes for group in found.odd] == [["node020"], ["node021"]]
    assert found.odd[0].differences == [("RDMA device, link", "16.0 GT/s x16")]
    assert found.odd[1].differences == [("driver, nvidia", "away")]
    text = "\n".join(as_text(found, False))
    assert text.count("another nvpm: 2.0.0 (commit 82b7a1d00000); the others") == 1


def test_newer_schema() -> None:
    """A status of a later schema is not compared, and the text says what to do."""
    nodes = {name: status(name) for name in ("node1", "node2", "node3")}
    nodes["node3"].update(schema=3, nvpm="3.1.0 (commit 0123456789ab)")
    found = Fleet(from_lines(with_labels(nodes)))
    assert found.alike == 2 and [node.name for node in found.silent] == ["node3"]
    assert found.silent[0].words == (
        "nvpm 3.1.0 (commit 0123456789ab) prints schema 3 of nvpm status --json, and this nvpm "
        "reads up to schema 2: run nvpm compare of that version"
    )
    lines = selftest_lines({"node4": {**selftest("node4", 1, 1), "schema": 2}})
    assert (
        "a newer nvpm prints schema 2 of nvpm selftest"
        in next(iter(Fleet(from_lines(lines)).silent)).words
    )


# ---- nodes that should be there ------------------------------------------------------------------


def test_expected_nodes() -> None:
    """A node that gave no status is there; a node of which nothing was read is missing."""
    lines = [
        *with_labels({"node1": status("node1"), "node2.example": status("node2")}),
        "node3: ssh: connect to host node3 port 22: No route to host",
    ]
    found = Fleet(from_lines(lines), expected("node[1-5],gpu7"))
    assert (found.missing, found.missing_count) == (["node4", "node5", "gpu7"], 3)
    text = list(as_text(found, False))
    assert text[0] == "3 nodes: 2 are alike, 1 gave no status, 3 are missing."
    assert any(line.startswith("node[4-5],gpu7") for line in text)
    found = Fleet(from_lines(lines), expected("4"))
    assert next(as_text(found, False)).endswith("1 gave no status, 1 is missing.")
    assert Fleet(from_lines(lines), expected("node2")).unexpected == ["node1", "node3"]
    for text_of in "node[1-", "0", "9999999", ",":
        with pytest.raises(argparse.ArgumentTypeError):
            expected(text_of)
