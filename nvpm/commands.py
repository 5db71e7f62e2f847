# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands and their options. Each command imports only the modules that it needs, because the
service runs some commands while the machine boots, and must not delay the boot."""

import argparse
import os
import sys
from functools import partial
from typing import Callable, Dict, Iterable, List, NoReturn

from . import release
from .options import Parser
from .read import programs
from .read.machine import MODULE, Machine

USAGE = """\
Usage: nvpm [COMMAND [OPTION]...]

  (none)      whether and how GPU memory can be registered on this node
  status      the same, and what needs attention; --all: everything; or of some devices
  check       one line and an exit code, for monitoring
  selftest    moves data between GPUs and RDMA devices, by each way
  regions     which process has which GPU memory registered (root)
  compare     which of many nodes differ, from what nvpm status --json printed on each
  explain     the cause of the failures in a log: of NCCL, UCX, MPI, the kernel and others
  run         starts a program that registers pointers where only dma-buf serves
  report      what a bug report needs, in one archive, without names and addresses
  help        this text; nvpm COMMAND --help says more
  --version   the version of nvpm

With --debug each of them says on stderr which file or program told it what.

The service: systemctl start nv_peer_mem, or /etc/init.d/nv_peer_mem start.
More: man nvpm, man nv_peer_mem
"""


def say(lines: Iterable[str]) -> int:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


FORMS = ("brief", "all", "json", "prometheus")


def status(machine: Machine, words: List[str]) -> int:
    from .facts.status import status_of
    from .show import printers, screen, text

    parser = Parser(
        "status",
        "Says whether and how GPU memory can be registered on this node, and what to do where "
        "something is in the way.",
        "Exit codes: 0 the module is loaded, or GPU memory can be registered without it and nobody "
        "has installed it; 3 otherwise, 4 nobody knows. "
        "With --prometheus always 0, so that a failed collector differs from an unloaded module.",
    )
    parser.add_argument(
        "device",
        nargs="*",
        help="what is said of this GPU (its number in nvidia-smi, or its PCI address) or this RDMA "
        "device, and no more",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--brief", action="store_true", help="the answer alone, 12 lines at most")
    forms.add_argument("--all", action="store_true", help="everything that was looked at")
    forms.add_argument("--json", action="store_true", help="one object for machines")
    forms.add_argument(
        "--prometheus",
        action="store_true",
        help="metrics for the node exporter's textfile collector",
    )
    options = parser.read(machine, words)
    form = next((form for form in FORMS if getattr(options, form)), "")
    if form and options.device:
        parser.error(f"--{form} is about the whole machine: name no DEVICE with it")
    found = status_of(machine)
    if options.prometheus:
        return say(printers.as_metrics(found))
    if options.json:
        say(printers.as_json(found))
    elif options.device:
        try:
            say(text.of_devices(found, screen.here(), options.device))
        except text.Unknown as reason:
            parser.error(str(reason))
    elif options.brief:
        say(text.brief(found, screen.here()))
    elif options.all:
        say(text.everything(found, screen.here()))
    else:
        say(text.attention(found, screen.here()))
    return found.code


class PluginParser(Parser):
    """The parser of a plug-in. A monitor reads only the standard output, so that is where wrong
    options are reported."""

    def error(self, message: str) -> NoReturn:
        from .show import printers

        say([printers.plugin(printers.UNKNOWN, f"wrong options: {message}")])
        super().error(message)


def check(machine: Machine, words: List[str]) -> int:
    from .facts.status import status_of
    from .show import printers

    parser = PluginParser(
        "check",
        "Says in one line whether GPUDirect RDMA works here, for Nagios and its kin.",
        "Exit codes: 0 OK, 1 WARNING (works but could do better), 2 CRITICAL (something does not "
        "work), 3 UNKNOWN.",
        codes=(printers.UNKNOWN, printers.UNKNOWN),
    )
    parser.add_argument(
        "-i",
        "--ignore",
        metavar="ID",
        action="append",
        default=[],
        help="what is not to be judged, with commas between; nvpm status --json has the IDs, and a "
        "star at the end stands for whatever follows: use/failed_*",
    )
    ignored = ",".join(parser.read(machine, words).ignore).split(",")
    try:
        line, code = printers.as_plugin(status_of(machine), ignored)
    except Exception as error:  # a monitor has to see every failure
        code = printers.UNKNOWN
        line = printers.plugin(code, f"{type(error).__name__}: {error}")
    say([line])
    return code


def regions(machine: Machine, words: List[str]) -> int:
    from .read.regions import Unreadable
    from .show import regions as listing

    parser = Parser(
        "regions",
        "Lists which process has which GPU memory registered.",
        "Exit codes: 0 the list was read, 1 it cannot be, 2 wrong options, 3 the module is not "
        "loaded.",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="one object for machines")
    forms.add_argument("--summary", action="store_true", help="a line for each process")
    options = parser.read(machine, words)
    form = listing.as_text
    if options.json:
        form = listing.as_json
    elif options.summary:
        form = listing.as_summary
    try:
        return say(form(machine))
    except Unreadable as reason:
        sys.stderr.write(f"nvpm regions: {reason}\n")
        return reason.code


def selftest(machine: Machine, words: List[str]) -> int:
    from .selftest import main

    return main.main(machine, words)


def compare(_machine: Machine, words: List[str]) -> int:
    from . import native

    return native.start("compare", words)


def explain(_machine: Machine, words: List[str]) -> int:
    from . import native

    return native.start("explain", words)


def run(machine: Machine, words: List[str]) -> int:
    from . import preload

    parser = Parser(
        "run",
        "Starts PROGRAM with a library that registers GPU memory as a dma-buf where ibv_reg_mr of "
        "a pointer is refused. Where the library is not needed, or would not help, PROGRAM is "
        "started without it. NVPM_PRELOAD_LOG=1: the library, and this command, say what they do.",
        "Exit codes: that of PROGRAM; 1 the library is missing or is for another processor, "
        "2 wrong options, 126 and 127 as a shell.",
    )
    parser.add_argument(
        "--library", metavar="FILE", default="", help=f"{preload.LIBRARY}, if it is elsewhere"
    )
    parser.add_argument(
        "--audit",
        action="store_true",
        help="catch libraries that are opened with RTLD_DEEPBIND, too (glibc 2.35 or later)",
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="PROGRAM [ARGUMENT]...", metavar="PROGRAM"
    )
    options = parser.read(machine, words)
    program = options.program[options.program[:1] == ["--"] :]
    if not program:
        parser.error("which PROGRAM?")
    return preload.run(machine, options.library, program, options.audit)


SHOWN = "nvpm report: nothing is written yet: nvpm report --write FILE.tar.gz writes this.\n"


def report(machine: Machine, words: List[str]) -> int:
    from . import bugreport

    parser = Parser(
        "report",
        "Collects what a bug report needs: status, versions, configuration, the kernel's lines "
        "about these devices, registrations, a selftest. Without --write it prints all of it, and "
        "nothing is kept.",
        "Names of hosts, users and jobs, serial numbers, network addresses and UUIDs are taken "
        "out. Models, versions, PCI addresses, addresses within the kernel, and names of programs "
        "that belong to the system stay. "
        "Exit codes: 0 it was printed or written, 1 the file cannot be written, 2 wrong options.",
    )
    parser.add_argument("--write", metavar="FILE", help="a new archive, FILE (.tar.gz)")
    parser.add_argument("--as-it-is", action="store_true", help="take nothing out")
    parser.add_argument("--no-selftest", action="store_true", help="do not run nvpm selftest")
    options = parser.read(machine, words)
    collect = partial(bugreport.collected, machine, options.as_it_is, not options.no_selftest)
    if not options.write:
        say(bugreport.shown(collect()))
        sys.stderr.write(SHOWN)
        return 0
    try:
        with bugreport.Archive(options.write) as archive:
            texts = collect()
            archive.write(texts)
    except OSError as error:
        sys.stderr.write(f"nvpm report: {options.write} cannot be written: {error.strerror}\n")
        return 1
    return say([f"Written: {options.write} ({', '.join(texts)}). Read it before you send it."])


def usage(_machine: Machine, _words: List[str]) -> int:
    return say([USAGE.rstrip()])


def version(_machine: Machine, _words: List[str]) -> int:
    return say([release()])


def first_screen(machine: Machine) -> int:
    """Prints the brief status and the next commands, for a user who runs nvpm without a command."""
    from .facts.status import status_of
    from .show import screen, text

    say(text.brief(status_of(machine), screen.here()))
    return say(["", "nvpm status says what needs attention; nvpm help lists the commands."])


# ---- commands for the service's script and the packages ----

IN_USE = 75  # EX_TEMPFAIL of sysexits.h: try again later

NOT_OURS = (
    "nv_peer_mem: the kernel belongs to another system (chroot or container): "
    "its module is left alone."
)
# The service must stop within this number of seconds, because a package manager waits.
STOP_LIMIT = 120
STAYS = "nv_peer_mem: the module stays loaded until the next boot."


def advise(machine: Machine, words: List[str]) -> int:
    """`advise MODULE [TEXT]` prints advice about MODULE. TEXT is the text that modprobe and the
    kernel have printed about MODULE. Without TEXT, the advice is for a module that is not
    installed."""
    if words[1:]:
        from . import native

        return say([native.advice(machine, words[0], "\n".join(words[1:]))])
    from .facts.advice import Advice

    return say([Advice(machine)["install"]])


def holders(machine: Machine, _words: List[str]) -> int:
    from .read.regions import holders as who

    return say(who(machine))


def leave(machine: Machine, words: List[str]) -> int:
    """`leave SCRIPT` stops the service for a package that is being removed. SCRIPT is the service's
    script. The script is a configuration file, so it may be missing, or may come from an earlier
    version. The exit code is IN_USE while programs have GPU memory registered, because only such
    programs may keep a package from being removed. In all other cases the exit code is 0."""
    from .read.place import kernel_of_another

    script = words[0]
    if kernel_of_another(machine):
        return say([NOT_OURS])
    if not os.access(script, os.X_OK):
        return 0
    stopped = programs.run([script, "stop"], STOP_LIMIT, quiet=False)
    if stopped.code == 0:
        return 0
    if stopped.why:
        sys.stderr.write(f"nv_peer_mem: {script} stop {stopped.why}\n")
    if not machine.loaded(MODULE):
        return 0
    if machine.text("/sys/module/nv_peer_mem/refcnt") not in ("", "0"):
        return IN_USE
    return say([STAYS])


COMMANDS: Dict[str, Callable[[Machine, List[str]], int]] = {
    "status": status,
    "regions": regions,
    "check": check,
    "selftest": selftest,
    "compare": compare,
    "explain": explain,
    "run": run,
    "report": report,
    "help": usage,
    "-h": usage,
    "--help": usage,
    "--version": version,
    "-V": version,
    "version": version,
    "advise": advise,
    "holders": holders,
    "leave": leave,
}


def main(machine: Machine, words: List[str]) -> int:
    if not words:
        return first_screen(machine)
    name, *rest = words
    if name == "help" and rest and rest[0] in COMMANDS:
        return help_of(machine, rest[0])
    if name == "help" and rest:
        name = rest[0]
    if name in COMMANDS:
        return COMMANDS[name](machine, rest)
    sys.stderr.write(f"nvpm: there is no command '{name}'. {hint(name)}\n")
    return 2


def help_of(machine: Machine, name: str) -> int:
    """Prints the help of a command. For check, --help ends with the code for unknown, because a
    monitor got no answer; a user who asks for help has got one."""
    try:
        return COMMANDS[name](machine, ["--help"])
    except SystemExit:
        return 0


def hint(name: str) -> str:
    """Returns a sentence with the command that the user probably meant. If no command is similar to
    NAME, the sentence says how to list all commands."""
    import difflib  # a small Python lacks this module, and only a typing error needs it

    near = difflib.get_close_matches(name, COMMANDS, 1)
    return f"Did you mean {near[0]}?" if near else "nvpm help lists them."
