# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Undoes what the journal says was done. Every end of a run goes through here: success, failure,
Ctrl-C, a hang, and `--undo` by hand after the supervisor was killed."""

import os
import signal
import time
from pathlib import Path
from typing import Dict, List

import machine
import peer
from journal import Journal, first, to_undo

LIMIT = 60
OURS = "nv_peer_mem"
# The module nvidia_peermem is NVIDIA's, or the marker of this project, whose file has another name.
MARKER = "nv_peer_mem_marker"


def undo_all(journal: Journal) -> List[str]:
    """Undoes what is left to be undone, and returns what could not be undone."""
    records = journal.records()
    failures = []
    rebooted = first(records, "begin").get("boot", "") != machine.boot()
    for act in to_undo(records):
        # A reboot of this machine has undone everything but what is on the other one.
        if rebooted and act["what"][0] != "remove":
            wrong, what = "", "a reboot has undone this"
        else:
            wrong, what = undo_one(act["what"]), ""
        if wrong:
            failures.append(wrong)
            journal.write("stays", number=act["number"], text=wrong)
        else:
            journal.write("undone", number=act["number"], text=what)
    return failures


def undo_one(what: List[str]) -> str:
    """Undoes an act, and returns what went wrong."""
    kind, words = what[0], what[1:]
    acts = {"unload": unload, "load": load, "kill": kill, "remove": peer.remove, "start": start}
    if kind not in acts:
        return f"the journal has an act that this version does not know: {kind}"
    return acts[kind](words)


def loaded(name: str) -> bool:
    return machine.there(f"/sys/module/{name}")


def unload(words: List[str]) -> str:
    """Unloads a module, and before it the marker, which depends on nv_peer_mem. The programs of a
    killed step give their memory back a moment later, so the module may be in use at first."""
    name = words[0]
    said = ""
    deadline = time.monotonic() + 20
    while loaded(name):
        for holder in machine.paths(f"/sys/module/{name}/holders/*"):
            machine.run(["rmmod", os.path.basename(holder)], LIMIT)
        said = machine.run(["rmmod", name], LIMIT).output
        if not loaded(name):
            return ""
        if time.monotonic() > deadline:
            return f"{name} cannot be unloaded: {said}"
        time.sleep(0.5)
    return ""


def load(words: List[str]) -> str:
    """Loads the module NAME as it was, by the file FILE, with PARAMETERS."""
    name, file, parameters = words[0], words[1], words[2:]
    if loaded(name):
        return ""
    done = machine.run(["modprobe", file] + parameters, LIMIT)
    if not loaded(name):
        return "{} cannot be loaded again: {}".format(name, done.output or "modprobe did nothing")
    return ""


def kill(words: List[str]) -> str:
    """Kills the process group of a step, if it is still the same process."""
    pid, born = int(words[0]), words[1]
    if born and machine.born(pid) == born:
        machine.kill_group(pid)
        deadline = time.monotonic() + 10
        while machine.born(pid) == born:
            if time.monotonic() > deadline:
                return f"process {pid} does not end, so a driver holds it"
            time.sleep(0.1)
    return ""


def is_active(unit: str) -> bool:
    return machine.run(["systemctl", "is-active", unit], LIMIT).output == "active"


def start(words: List[str]) -> str:
    """Starts a unit that was active before the run."""
    unit = words[0]
    done = machine.run(["systemctl", "start", unit], LIMIT)
    return "" if is_active(unit) else f"{unit} does not start: {done.output}"


def stop(journal: Journal, unit: str) -> str:
    """Stops a unit if it is active, so that it is started again at the end. Otherwise udev would
    stop the unit a moment after its module was unloaded, and the unit would unload the module that
    is tried."""
    if not is_active(unit):
        return ""
    journal.undo("start", unit)
    done = machine.run(["systemctl", "stop", unit], LIMIT)
    return f"{unit} does not stop: {done.output}" if is_active(unit) else ""


def parameters_of(name: str) -> List[str]:
    """Returns the parameters with which a loaded module would be as it is."""
    values: Dict[str, str] = {}
    for path in machine.paths(f"/sys/module/{name}/parameters/*"):
        values[os.path.basename(path)] = machine.text(path)
    return [f"{key}={value}" for key, value in sorted(values.items()) if value]


def take_out(journal: Journal, name: str, file: str) -> str:
    """Unloads a module that was loaded before the run, so that it is loaded again at the end.
    Returns what went wrong."""
    if not loaded(name):
        return ""
    journal.undo("load", name, file, *parameters_of(name))
    return unload([name])


def put_in(journal: Journal, name: str, file: Path, parameters: List[str]) -> str:
    """Loads a module of this run, so that it is unloaded at the end. Returns what went wrong."""
    journal.undo("unload", name)
    done = machine.run(["insmod", str(file)] + parameters, LIMIT)
    return "" if loaded(name) else f"insmod {name}: {done.output or done.code}"


def ignore_signals() -> None:
    """Undoing must not be interrupted, because an interrupted undo leaves a node without its
    modules."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
