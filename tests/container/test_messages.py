# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each message of the pod has a row of its own in nvpm/data/own, and each of the pod's rows is a
message of the pod. The messages are the strings of the pod's program."""

from keeper import text
from own import MESSAGES, Own, rows

POD = [one for one in MESSAGES if one.group == "pod"]

# The beginning of each text, with the state and the source that has the text.
TEXTS = {
    "waiting": {
        "decide": [
            "NVIDIA's driver is not loaded",
            "NVIDIA's driver is being loaded",
            "the module nvidia_uvm is not loaded",
            "the RDMA core is not loaded",
            "the OFED container is not ready",
            "the driver's container is not ready",
            "the RDMA core that is loaded has no peer memory",
        ],
        "places": [
            "no headers of kernel",
            "NVIDIA's driver was unloaded",
            "the file of the loaded driver",
            "the files of the loaded RDMA core",
        ],
        "serve": ["somebody else has unloaded the module"],
    },
    "blocked": {"decide": ["NVIDIA's own nvidia_peermem is loaded"]},
    "unloaded": {"decide": ["the module was unloaded on request"]},
    "failed": {"serve": ["the build: ", "a file cannot be read or written: "]},
    "ready": {"decide": ["7 7 is registered with the RDMA core"]},
    "held": {"decide": ["7; 7, but programs have GPU memory registered"]},
    # These messages have no state.
    "": {
        "settings": ["NVPM_NAME=", "NVPM_PARAMETERS has ", "NVPM_METRICS_PORT="],
        "cache": ["others than root can write to "],
    },
}
SAID = [
    f"nv-peer-mem: {state}{': ' if state else ''}{text(file, beginning)}"
    for state, files in TEXTS.items()
    for file, beginnings in files.items()
    for beginning in beginnings
]


def rows_of(said: str) -> list[Own]:
    return [one for one in rows(said) if one in POD]


def test_each_message_has_one_row() -> None:
    for said in SAID:
        assert len(rows_of(said)) == 1, said


def test_each_row_is_a_message() -> None:
    found = {one.id for said in SAID for one in rows_of(said)}
    assert found == {one.id for one in POD}
