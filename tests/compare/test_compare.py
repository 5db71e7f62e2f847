# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm compare finds the odd nodes of a fleet. It reads the output of each tool that collects the
status of nodes."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import (
    HEIGHT,
    WIDTH,
    Fleet,
    Status,
    by_ansible,
    by_module,
    changed,
    fact,
    fleet,
    in_groups,
    kind,
    mixed,
    numbered,
    printed,
    selftest,
    selftest_lines,
    status,
    used,
    with_labels,
)
from program import TOP, nvpm

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
    changed("BAR1", "1 GiB")(nodes["node2"])
    found = Fleet(FORMS[form](nodes))
    own_names = form in ("srun --label", "one after the other", "on one line each")
    names = [said["host"] for said in nodes.values()] if own_names else list(nodes)
    assert found.nodes == names and not found.silent
    assert [group.nodes for group in found.odd] == [[names[1]]]
    value = "1 x 1 GiB; 1 x 128 GiB (0000:43:00.0)"
    assert found.odd[0].differences == [("GPU, BAR1", value)]
    assert found.kinds[0]["norm"]["ways"] == "nv_peer_mem"


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
    found = Fleet((HERE / f"collected/{tool}.txt").read_text(encoding="utf-8").splitlines())
    assert set(found.nodes) == LIVING.get(tool, {"node1", "node4", "node5"})
    assert set(found.silent) == set(TOLD[tool])
    assert found.total == len(found.nodes) + len(found.silent)
    for name, words in TOLD[tool].items():
        assert words in found.silent[name] and "non-zero return code" not in found.silent[name]
    if tool.startswith("srun"):
        assert found.kinds[0]["norm"]["ways"].startswith("96 x ")


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
    assert Fleet(printed(status("other")), "--expect", text).missing == names


@pytest.mark.parametrize(
    "text",
    [
        *("n[5-1]", "n[", "n[a]", "n[0-999999999999]", "r[1-900]n[1-900]", "node[1-", ","),
        *("0", "9999999", "100001"),
    ],
)
def test_no_names(text: str) -> None:
    """No list of names fills memory."""
    assert nvpm("compare", "--expect", text).code == 2


def test_headings_of_a_node() -> None:
    """A node that prints headings with many nodes does not fill memory."""
    rule = "-" * 16
    lines = [rule, "node1", rule, *printed(status("node1"))]
    for at in range(50):
        lines += [rule, f"x{at}-[1-90000]", rule, "words"]
        lines += [f"clush: y{at}-[1-90000] (90000): exited with exit code 1"]
    found = Fleet(lines)
    assert found.nodes == ["node1"] and found.total <= 100_000


def test_addresses() -> None:
    """The first part of an address is no name of a host, but the first part of a domain name is."""
    lines = [
        *with_labels({"10.0.0.1": status("a"), "node2.example": status("b")}),
        "clush: 10.0.0.5: command timeout",
        "clush: node2: exited with exit code 3",
    ]
    found = Fleet(lines)
    assert found.nodes == ["10.0.0.1", "node2.example"]
    assert found.silent == {"10.0.0.5": "command timeout"}


def test_files(tmp_path: Path) -> None:
    """A directory has a file for each node. Some of the nodes have failed."""
    for name in ("node1", "node2"):
        (tmp_path / f"{name}.json").write_text("\n".join(printed(status(name))))
    (tmp_path / "node3.json").write_text("bash: nvpm: command not found\n")
    (tmp_path / "node4.txt").write_text("")
    (tmp_path / ".hidden").write_text("x")
    found = Fleet([], str(tmp_path))
    assert found.nodes == ["node1", "node2"]
    assert found.silent == {"node3": "bash: nvpm: command not found", "node4": "an empty file"}


def test_equal_nodes() -> None:
    """Counters, times, and the speed of an idle GPU's link differ between equal nodes."""
    found = fleet(
        9, node003=changed("link", "32.0 GT/s x16"), node004=changed("registrations", "9")
    )
    assert found.alike == 9 and not found.odd
    assert found.text[0] == "9 nodes: 9 are alike."


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
    lines = found.text
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
    assert found.odd[0].nodes == ["node017"]


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

    def norm(*values: str) -> str:
        """Returns what is usual among nodes with these values of BAR1; empty: no such fact."""
        nodes = {f"n{at}": status(f"n{at}") for at in range(len(values))}
        for said, value in zip(nodes.values(), values, strict=True):
            said["facts"] = [one for one in said["facts"] if one["name"] != "BAR1"]
            said["facts"] += [fact("GPU 0000:03:00.0", "BAR1", value)] if value else []
        usual: str = Fleet(with_labels(nodes)).kinds[0]["norm"]["GPU, BAR1"]
        return usual

    assert norm("1", "") == "1"
    assert norm("1", "", "") == "not there"
    assert norm("1", "2", "2") == "2"


def test_order_of_groups() -> None:
    """The smallest group comes first. If two groups have the same size, the group whose first node
    has the lower name comes first."""
    values = {"d": "1", "c": "2", "a": "3", "b": "3", "e": "0", "f": "0", "g": "0"}
    nodes = {name: status(name) for name in values}
    for name, value in values.items():
        changed("BAR1", value)(nodes[name])
    found = Fleet(with_labels(nodes))
    assert [group.nodes for group in found.odd] == [["c"], ["d"], ["a", "b"]]


def features(said: Status) -> dict[str, str]:
    """Returns the features of a node."""
    found: dict[str, str] = Fleet([json.dumps({"facts": [], **said})]).kinds[0]["norm"]
    return found


def test_values_of_several_devices() -> None:
    """The most frequent value comes first. After each of the other values stand the names of the
    devices. If two values are equally frequent, the first in the alphabet comes first."""

    def value(sizes: str) -> str:
        facts = [fact(f"GPU 0000:{at:x}3:00.0", "BAR1", size) for at, size in enumerate(sizes)]
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
    lines = found.text
    assert len(lines) <= HEIGHT and max(map(len, lines)) <= WIDTH
    assert any("more groups: nvpm compare --all" in line for line in lines)
    assert len(found.all()) > HEIGHT


def test_silent_nodes() -> None:
    """Nodes that gave no status are part of the fleet, and come first."""
    lines = [
        *with_labels({"node1": status("node1"), "node2": status("node2")}),
        "node3: ssh: connect to host node3 port 22: No route to host",
        "node4: bash: line 1: nvpm: command not found",
        "node5: {",
        'node5:   "schema": 2,',
    ]
    text = Fleet(lines).text
    assert text[0] == "5 nodes: 2 are alike, 3 gave no status."
    assert text[1].startswith("node3") and "No route to host" in text[1]
    assert "node5         no status: the status is cut off" in text


def test_messages_beside_a_status() -> None:
    """Messages of a login are no nodes, and rules around them hide no status. A collector's own
    messages are no nodes either."""
    login = ["Warning: authorised users only", "-" * 20, *printed(status("node1"))]
    assert (Fleet(login).nodes, Fleet(login).total) == (["node1"], 1)
    lines = ["srun: job 5 queued", *with_labels({"node1": status("node1")})]
    assert (Fleet(lines).nodes, Fleet(lines).total) == (["node1"], 1)


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
    ids=lambda text: text[:40],
)
def test_other_forms(text: str) -> None:
    """JSON in another form hides no other node."""
    lines = [f"node0: {text}", *with_labels({"node1": status("node1")})]
    found = Fleet(lines)
    assert "node1" in found.nodes
    assert list(found.silent) in (["node0"], [])


def test_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "node1.json").write_text("\n".join(printed(status("node1"))), "utf-8-sig")
    found = Fleet([], str(tmp_path))
    assert (found.nodes, found.silent) == (["node1"], {})


def test_same_names() -> None:
    """Two nodes may have the same name. Both of them must count."""
    lines = [*printed(status("localhost")), *printed(status("localhost"))]
    assert Fleet(lines).nodes == ["localhost", "localhost#2"]


def test_harmful_text() -> None:
    """The words of a node steer no terminal."""
    said = status("node1")
    changed("nvidia", "\033[2J\033]0;x\007")(said)
    found = Fleet([*with_labels({"node1": said}), "node2: \033[0m\u202e"])
    for text in (*found.text, *found.all(), found.said.out.replace("\n", "")):
        assert not re.search("[\0-\x1f\x7f-\x9f\u202e]", text)


def test_selftests() -> None:
    """The results of selftests join the statuses of the same nodes. Small differences of rates do
    not count; a slow direction and a failed pair do."""
    names = [f"node{number}" for number in range(9)]
    results = {name: selftest(name, 24e9 + at * 1e8, 20e9) for at, name in enumerate(names)}
    results["node3"] = selftest("node3", 24e9, 5e9)
    results["node5"] = selftest("node5", 24e9, 20e9, "the RDMA write ended with x")
    lines = [*with_labels({name: status(name) for name in names}), *selftest_lines(results)]
    found = Fleet(lines)
    assert (len(found.nodes), found.alike, len(found.odd)) == (9, 7, 2)
    text = "\n".join(found.text)
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
    found = Fleet(selftest_lines(once))
    assert found.alike == 3 and found.odd[0].nodes == ["d"]
    assert ("selftest", "no GPU") in found.odd[0].differences


def test_use_at_this_moment() -> None:
    """A node that moves its data through host memory, while the others use GPUDirect RDMA, is odd.
    A node is not odd if it is idle, if nobody can tell, or if its programs use GPUs without RDMA,
    as the job of one node does. But such a node is named."""
    names = [f"node{number}" for number in range(1, 11)]
    said = {name: used("direct", "GPU memory", "GPU memory", "no GPU") for name in names}
    said["node2"] = used("host", "host memory only")
    said["node4"] = used("without_rdma", without=2)
    said["node5"] = used("idle", "no GPU", "nothing registered")
    said["node6"] = used("unknown", "unknown")
    said["node8"] = used("partly", "GPU memory", "host memory only")
    del said["node9"]
    found = Fleet([*with_labels({name: status(name) for name in names}), *selftest_lines(said)])
    direct = ["node1", "node3", "node7", "node10"]
    assert found.used == {
        "GPUDirect RDMA": direct,
        "GPUDirect RDMA by some processes only": ["node8"],
        "host memory only": ["node2"],
        "GPUs without RDMA": ["node4"],
        "nothing by RDMA": ["node5"],
        "not known": ["node6"],
    }
    assert {one: group.differences for group in found.odd for one in group.nodes} == {
        "node2": [("used now", "host memory only")],
        "node8": [("used now", "GPUDirect RDMA by some processes only")],
    }
    row = (
        "used now GPUDirect RDMA: 4 nodes; GPUDirect RDMA by some processes only: node8;"
        " host memory only: node2; GPUs without RDMA: node4; nothing by RDMA: 1 node;"
        " not known: node6"
    )
    assert row in found.words
    assert "node2 used now: host memory only; the others GPUDirect RDMA" in found.words
    assert found.said.code == 1
    alike = {name: said[name] for name in [*direct, "node4", "node5", "node6"]}
    found = Fleet([*with_labels({name: status(name) for name in alike}), *selftest_lines(alike)])
    assert found.said.code == 0 and found.alike == 7
    assert "GPUs without RDMA: node4" in found.words


def test_use_alone() -> None:
    """nvpm compare also reads what nvpm used printed without statuses. The last answer of a node
    counts, and an idle fleet has no difference. Tests of few nodes stay what they are."""
    said = {name: used("host", "host memory only") for name in ("a", "b", "c")}
    lines = selftest_lines({**said, "d": used("direct", "GPU memory")})
    assert [group.nodes for group in Fleet(lines).odd] == [["d"]]
    assert not Fleet([*lines, *selftest_lines({"d": used("host", "host memory only")})]).odd
    idle = Fleet(selftest_lines({name: used("idle") for name in said}))
    assert idle.said.code == 0 and idle.used == {"nothing by RDMA": ["a", "b", "c"]}
    both = Fleet([*lines, *selftest_lines({"a": selftest("a", 24e9, 24e9)})])
    assert [group.nodes for group in both.odd] == [["d"]]


def test_use_in_the_word_of_the_node() -> None:
    """nvpm used knows what its answer means. A program that has GPUs and no RDMA device open does
    not use TCP for certain while others have host memory registered. A word of a later nvpm is not
    known."""
    said = {"a": used("idle", "host memory", without=1), "b": used("later", "GPU memory")}
    assert Fleet(selftest_lines(said)).used == {"nothing by RDMA": ["a"], "not known": ["b"]}


def test_use_by_numbers() -> None:
    """The answer has the host's name, for tools that only number the nodes."""
    nodes = [status("n1"), status("n2"), {**used("direct", "GPU memory"), "host": "n1"}]
    found = Fleet([json.dumps(one) for one in nodes])
    assert found.nodes == ["n1", "n2"] and found.used == {"GPUDirect RDMA": ["n1"]}


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
    found = Fleet(printed(status("other")), "--expect", ",".join(names))
    assert any(line.startswith(f"{text} ") or line == text for line in found.text), found.text


def test_cannot_compare() -> None:
    said = nvpm("compare", text="node1: nvpm: not found\n")
    assert said.code == 2 and "The first node said: nvpm: not found" in said.err
    said = nvpm("compare", "/nonexistent")
    assert said.code == 2 and "nvpm compare: error: there is no /nonexistent" in said.err


# ---- kinds of nodes ------------------------------------------------------------------------------


OLD, NEW = "6.1.0", "6.8.0"


def test_odd_node_of_a_small_kind() -> None:
    """The odd node of a smaller kind is named with its own fault."""
    found = Fleet((HERE / "collected/two_kinds.txt").read_text(encoding="utf-8").splitlines())
    assert [(len(one["nodes"]), one["alike"]) for one in found.kinds] == [(10, 10), (10, 9)]
    assert [(group.nodes, group.differences) for group in found.odd] == [
        (["b9"], [("RDMA device, link", "16.0 GT/s x8")])
    ]
    text = found.text
    assert text[0] == "20 nodes of 2 kinds: 19 are alike within their kind, 1 differs, in 1 way."
    assert text[1] == "2 kinds of 10 nodes:" and text[4].startswith("b9 ")


def test_twelve_kinds() -> None:
    kinds = [(20, kind(kernel=f"6.{at}.0")) for at in range(12)]
    kinds[7] = (19, kind(kernel="6.7.0"))
    found = mixed(*kinds, (1, kind(kernel="6.7.0", link="16.0 GT/s x8")))
    text = found.text
    assert (len(found.nodes), found.alike) == (240, 239)
    assert text[1] == "12 kinds of 20 nodes:" and len(text) <= HEIGHT
    assert text[-1].startswith("node239       RDMA device, link: 16.0 GT/s x8; the others of kind")


def test_halves_of_an_update() -> None:
    """Two halves that differ only in the kernel are two kinds, and no node is odd."""
    found = mixed((10, kind(kernel=OLD)), (10, kind(kernel=NEW)))
    assert not found.odd and found.alike == 20
    text = found.words
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
    text = found.words
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
    found = Fleet(lines)
    name = "selftest, GPU 0 with mlx5_0 by pointer, to the GPU"
    assert not found.odd
    assert [kind["norm"][name] for kind in found.kinds] == ["about 48 GB/s", "about 24 GB/s"]


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
    text = "\n".join(found.text)
    assert text.count("another nvpm: 2.0.0 (commit 82b7a1d00000); the others") == 1


def test_newer_schema() -> None:
    """A status of a later schema is not compared, and the text says what to do."""
    nodes = {name: status(name) for name in ("node1", "node2", "node3")}
    nodes["node3"].update(schema=3, nvpm="3.1.0 (commit 0123456789ab)")
    found = Fleet(with_labels(nodes))
    assert found.alike == 2 and list(found.silent) == ["node3"]
    assert found.silent["node3"] == (
        "nvpm 3.1.0 (commit 0123456789ab) prints schema 3 of nvpm status --json, and this nvpm "
        "reads up to schema 2: run nvpm compare of that version"
    )
    lines = selftest_lines({"node4": {**selftest("node4", 1, 1), "schema": 2}})
    lines += with_labels({name: nodes[name] for name in ("node1", "node2")})
    words = Fleet(lines).silent["node4"]
    assert words.startswith("a newer nvpm prints schema 2 of nvpm selftest")


# ---- nodes that should be there ------------------------------------------------------------------


def test_expected_nodes() -> None:
    """A node that gave no status is there; a node of which nothing was read is missing."""
    lines = [
        *with_labels({"node1": status("node1"), "node2.example": status("node2")}),
        "node3: ssh: connect to host node3 port 22: No route to host",
    ]
    found = Fleet(lines, "--expect", "node[1-5],gpu7")
    assert (found.missing, found.missing_count) == (["node4", "node5", "gpu7"], 3)
    text = found.text
    assert text[0] == "3 nodes: 2 are alike, 1 gave no status, 3 are missing."
    assert any(line.startswith("node[4-5],gpu7") for line in text)
    found = Fleet(lines, "--expect", "4")
    assert found.text[0].endswith("1 gave no status, 1 is missing.")
    assert Fleet(lines, "--expect", "node2").unexpected == ["node1", "node3"]


def test_the_page_names_each_key() -> None:
    page = (TOP / "docs/monitoring.md").read_text(encoding="utf-8")
    row = page.partition("| `nvpm compare --json` |")[2].partition("\n")[0]
    named = set(re.findall(r"`(\w+)`", row)) | {"schema"}
    found = json.loads(mixed((3, kind()), (1, kind(link="16.0 GT/s x8"))).said.out)
    there = {*found, *found["kinds"][0], *found["groups"][0], *found["groups"][0]["differences"][0]}
    assert len(there) > 15 and there <= named, there - named
