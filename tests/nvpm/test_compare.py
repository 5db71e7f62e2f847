# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm compare finds the odd nodes of a fleet. It reads the output of each tool that collects the
status of nodes."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nvpm.compare.features import features
from nvpm.compare.groups import groups_of, modes_of
from nvpm.compare.inputs import Node, from_lines, from_paths
from nvpm.compare.main import HEIGHT, WIDTH, Fleet, as_json, as_text
from nvpm.compare.names import NotNames, folded, unfolded

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
# The output of real tools (pdsh 2.34, ClusterShell 1.9, dshbak, Ansible core 2.19, Slurm 22.05),
# which ran nvpm on nodes of which some are dead.
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
    """Of two nodes one is the norm, and the cause of the difference comes before what follows."""

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
    """Of two groups of the same size, the one that is more like all nodes is the norm, whichever
    comes first. Two of five nodes have another driver, and a third node has less memory in BAR1."""

    def other(said: Status) -> None:
        changed("nvidia", "loaded, version 470")(said)
        changed("failed_driver", "3")(said)

    changes = {"node002": changed("BAR1", "64 GiB"), **dict.fromkeys(bad, other)}
    found = fleet(5, **changes)
    assert found.alike == 2
    by_nodes = {tuple(group.nodes): group.differences for group in found.odd}
    assert set(by_nodes) == {bad, ("node002",)}
    assert ("driver, nvidia", "loaded, version 470") in by_nodes[bad]


def test_most_frequent_value() -> None:
    """Of a feature that half of the nodes lack, the value counts as the usual one. A feature that
    most nodes lack is unusual."""
    assert modes_of({"a": {"x": "1"}, "b": {}}) == {"x": "1"}
    assert modes_of({"a": {"x": "1"}, "b": {}, "c": {}}) == {"x": "not there"}
    assert modes_of({"a": {"x": "1"}, "b": {"x": "2"}, "c": {"x": "2"}}) == {"x": "2"}


def test_order_of_groups() -> None:
    """The smallest group comes first. Of two groups of the same size, the one whose first node has
    the lower name comes first."""
    nodes = {"d": {"x": "1", "y": "1"}, "c": {"x": "2", "y": "0"}, "a": {}, "b": {}}
    nodes.update(e={"x": "0", "y": "0"}, f={"x": "0", "y": "0"}, g={"x": "0", "y": "0"})
    found = groups_of(nodes, {"x": "0", "y": "0"})
    assert [group.nodes for group in found] == [["c"], ["d"], ["a", "b"], ["e", "f", "g"]]


def test_values_of_several_devices() -> None:
    """The most frequent value comes first, and the names of the devices follow the others. Of two
    values that are equally frequent, the first in the order of the alphabet comes first."""

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
    """The speed of an idle GPU's link is no feature, but its width is, and so is a slow slot."""
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
    """The key that signs modules on Ubuntu has the name of the host, which is no difference."""

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
    """What nodes say steers no terminal."""
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
