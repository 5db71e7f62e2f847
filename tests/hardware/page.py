# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The page at the end: what held, what did not, and what could not be tried and why. The page is
made from the journal alone, so it can also be made after a panic. The archive has the page and the
journal, without names."""

import io
import re
import tarfile
import time
from pathlib import Path
from typing import Dict, List, Tuple

import journal
import machine
from journal import Record

# What this version does not try at all. The program says so itself, on every page.
NEVER = (
    "several GPUs or RDMA devices in one registration or transfer",
    "the service, the packages and dkms: this run installs nothing",
    "faults of driver, core and device: only the lab's doubles make them (tests/guest/scenarios)",
    "what the device still reaches without an error: only the emulated ConnectX sees every access",
)
WITHOUT_RDMA = (
    "Not tried, because --gpus leaves it out: the module, RDMA devices, and all steps with them"
)
WITHOUT_PEER = "Not tried without --peer HOST: transfers to another machine"
GOOD, WRONG, NOTHING = 0, 1, 3
# The lab's bound for ours / nvidia-peermem is 1 (docs/performance/results.md); a clock on real
# hardware varies, so a twentieth more is allowed here.
BOUND = 1.05

PAGE, ARCHIVE = "page.txt", "hardware-report.tar.gz"
DIRECTORY = "nv_peer_mem-hardware"


def write(directory: Path) -> int:
    """Writes page and archive, prints the page, and returns the exit code."""
    lines, code = made(directory)
    whole = "\n".join(lines) + "\n"
    (directory / PAGE).write_text(whole, encoding="utf-8")
    keep(directory, whole)
    print(whole, flush=True)
    return code


def steps_of(records: List[Record]) -> Dict[str, Dict[str, object]]:
    """Returns for each step its verdict, its seconds and its lines."""
    found = {}  # type: Dict[str, Dict[str, object]]
    for record in records:
        if record["is"] == "step":
            found[record["name"]] = {"verdict": "", "seconds": 0, "lines": []}
        elif record["is"] == "line" and record["step"] in found:
            found[record["step"]]["lines"].append(record)  # type: ignore[attr-defined]
        elif record["is"] == "done" and record["step"] in found:
            found[record["step"]].update(verdict=record["verdict"], seconds=record["seconds"])
    return found


def made(directory: Path) -> Tuple[List[str], int]:
    """Returns the page's lines, and the exit code of the run."""
    records = journal.read(directory)
    begin, end = journal.first(records, "begin"), journal.first(records, "end")
    steps = steps_of(records)
    tried = [name for name, step in steps.items() if step["verdict"] not in ("", "not tried")]
    wrong = [n for n, s in steps.items() if s["verdict"] not in ("held", "not tried")]
    stays = [record["what"] for record in journal.to_undo(records)]
    lines = ["nv_peer_mem on hardware: " + verdict(records, tried, wrong, stays), ""]
    lines += about(begin)
    lines += unfinished(directory, records, end, stays)
    lines += part("Did not hold", records, steps, wrong, ("bad",))
    left = [name for name in begin.get("plan", []) if name not in steps]
    if left:
        lines += [f"Not reached: {len(left)} steps, the first is {left[0]}", ""]
    lines += part("Held", records, steps, [n for n in steps if n not in wrong], ())
    lines += part("Could not be tried", records, steps, list(steps), ("not",))
    lines += figures(records)
    if begin.get("gpus"):
        lines.append(WITHOUT_RDMA)
    elif not begin.get("peer"):
        lines.append(WITHOUT_PEER)
    lines += ["Not tried by this version:"] + ["  " + text for text in NEVER] + [""]
    lines += [
        f"Please send {directory / ARCHIVE}",
        "(read it before): it has this page and the journal, without the names of this machine and",
        "its users. docs/hardware.md says where to.",
    ]
    if wrong or stays or not end:
        return lines, WRONG
    return lines, GOOD if tried else NOTHING


def verdict(
    records: List[Record], tried: List[str], wrong: List[str], stays: List[List[str]]
) -> str:
    if not journal.first(records, "end"):
        step = journal.unfinished_step(records)
        return "NOT FINISHED" + (", in the step " + step if step else "")
    text = f"{len(tried) - len(wrong)} of {len(tried)} steps held"
    if wrong:
        text += f"; {len(wrong)} did not"
    if stays:
        text += "; NOT EVERYTHING IS PUT BACK"
    why = journal.first(records, "end")["why"]
    return text if why == "all steps were run" else f"{text}; ended early: {why}"


def about(begin: Record) -> List[str]:
    facts = begin.get("facts", {})
    lines = []
    for key, title in (("kernel", "kernel"), ("driver", "NVIDIA driver"), ("core", "RDMA core")):
        if facts.get(key):
            lines.append(f"  {title}: {facts[key]}")
    if facts.get("driver_licence"):
        lines[-1:] += ["  the driver's licence: " + facts["driver_licence"]]
    title = "GPU" if begin.get("gpus") else "pair"
    lines += [f"  {title}: {pair}" for pair in begin.get("pairs", [])]
    if not begin.get("gpus"):
        lines.append("  nv_peer_mem: " + begin.get("version", "?"))
    return lines + [""]


def unfinished(
    directory: Path, records: List[Record], end: Record, stays: List[List[str]]
) -> List[str]:
    """Says what to do after a panic, or if something could not be put back."""
    lines = []
    if not end:
        step = journal.unfinished_step(records)
        is_same_boot = journal.first(records, "begin").get("boot") == machine.boot()
        if is_same_boot:
            lines.append("The run was killed. --undo puts everything back.")
        else:
            lines.append("The machine was started again during the run.")
        lines.append("The last step was: {}".format(step or "none"))
        lines += [
            f"Send {ARCHIVE} and what is left of the crash: the console, pstore (/sys/fs/pstore,",
            "/var/lib/systemd/pstore), kdump (/var/crash). Nothing of this run starts at a boot.",
            "",
        ]
    elif stays:
        lines += ["Not put back:"] + ["  " + " ".join(what) for what in stays]
        lines += [f"Try again: --undo, in {directory}", ""]
    return lines


def part(
    title: str,
    records: List[Record],
    steps: Dict[str, Dict[str, object]],
    names: List[str],
    words: Tuple[str, ...],
) -> List[str]:
    """Returns the steps of a part of the page. Without words, only the number of lines is said."""
    lines = []
    for name in names:
        step = steps[name]
        every = step["lines"]  # type: List[Record]  # type: ignore[assignment]
        said = [record["text"] for record in every if record["word"] in words]
        if words and (said or "bad" in words):
            lines.append("  {} ({})".format(name, step["verdict"] or "not ended"))
            lines += ["      " + text.replace("\n", "\n      ") for text in said]
        elif not words and step["verdict"] == "held":
            good = sum(record["word"] == "ok" for record in every)
            lines.append("  {}: {} checks, {} s".format(name, good, step["seconds"]))
    return [title + ":", *lines, ""] if lines else []


def figures(records: List[Record]) -> List[str]:
    """Returns a table: a row for each figure, a column for each way; ratios to nvidia-peermem."""
    table = {}  # type: Dict[Tuple[str, str, str], Dict[str, float]]
    ways = []  # type: List[str]
    for record in records:
        if record["is"] != "figure":
            continue
        way, pair, _ = record["step"].split("/")
        table.setdefault((pair, record["name"], record["unit"]), {})[way] = record["value"]
        if way not in ways:
            ways.append(way)
    if not table:
        return []
    has_ratio = "persistent" in ways
    note = "; ratio: persistent / nvidia-peermem" if has_ratio else ""
    lines = [f"Figures (medians{note}):"]
    head = "".join(f"{way:>16}" for way in ways)
    lines.append("  {:<44}{}{}".format("", head, "   ratio" if has_ratio else ""))
    for (pair, name, unit), values in table.items():
        row = "".join(
            "{:>16}".format(f"{values[way]:.3g}" if way in values else "-") for way in ways
        )
        end = ratio(name, values) if has_ratio else ""
        lines.append("  {:<44}{}{}".format(f"{name}, {unit}", row, end))
        if len({key[0] for key in table}) > 1:
            lines[-1] += "  " + pair
    return [*lines, ""]


def ratio(name: str, values: Dict[str, float]) -> str:
    """Returns the ratio to nvidia-peermem, and a mark if the lab says that it is less."""
    if not values.get("nvidia-peermem") or "persistent" not in values:
        return "{:>8}".format("-")
    value = values["persistent"] / values["nvidia-peermem"]
    is_cost = name.startswith(("registration", "its end"))
    mark = " !! the lab says at most 1" if is_cost and value > BOUND else ""
    return "{:>8}{}".format(f"{value:.2f}", mark)


# ---- the archive ------------------------------------------------------------------------------

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I)
ADDRESS = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b")
HARDWARE_ADDRESS = re.compile(r"\b[0-9a-f]{2}([:-][0-9a-f]{2}){5,}\b", re.I)
HOME = re.compile(r"/home/[^/\s\"]+")


def without_names(text: str, names: List[str]) -> str:
    """Takes out names of the machine and its users, addresses, and identities of GPUs."""
    text = UUID.sub("(uuid)", text)
    text = HARDWARE_ADDRESS.sub("(address)", text)
    text = ADDRESS.sub("(address)", text)
    text = HOME.sub("/home/(user)", text)
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", "(name)", text)
    return text


def names_here() -> List[str]:
    """Returns the machine's names and those of people who have accounts."""
    names = [machine.text("/proc/sys/kernel/hostname")]
    names.append(names[0].split(".")[0])
    for line in machine.text("/etc/passwd").splitlines():
        words = line.split(":")
        if len(words) > 2 and words[2].isdigit() and 1000 <= int(words[2]) < 60000:
            names.append(words[0])
    return [name for name in names if name]


def keep(directory: Path, whole: str) -> None:
    """Writes the archive. It has no file that could have names but after these are taken out."""
    names = names_here()
    for act in journal.read(directory):
        if act["is"] == "undo" and act["what"][0] == "remove":
            names.append(act["what"][1].split("@")[-1])
    files = {PAGE: whole}
    for name in (journal.NAME, "nvpm.txt", "build.log", "client.log"):
        try:
            files[name] = (directory / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    path = directory / ARCHIVE
    with tarfile.open(str(path), "w:gz") as archive:
        for name, text in files.items():
            data = without_names(text, names).encode()
            entry = tarfile.TarInfo(f"{DIRECTORY}/{name}")
            entry.size, entry.mode, entry.mtime = len(data), 0o644, int(time.time())
            archive.addfile(entry, io.BytesIO(data))
    path.chmod(0o600)
