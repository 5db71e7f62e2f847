# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands and their options."""

import argparse
import os
import subprocess
import sys

USAGE = """\
Usage: nvpm COMMAND [OPTION]...

  status [--json | --prometheus]   what decides about GPUDirect RDMA on this machine
  regions [--json]                 which process has which GPU memory registered (root)
  check [--ignore ID]              one line and an exit code, for monitoring
  selftest [--size SIZE] [--gpu N] [--device NAME] [--seed N] [--timeout SECONDS] [--json]
                                   moves data between GPUs and RDMA devices
  help                             this text; nvpm COMMAND --help says more

The service: systemctl start nv_peer_mem, or /etc/init.d/nv_peer_mem start.
More: man nvpm, man nv_peer_mem
"""


class Formatter(argparse.HelpFormatter):
    def add_usage(self, usage, actions, groups, prefix=None):
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


class Parser(argparse.ArgumentParser):
    """Of a command. CODES are the exit codes of its help and of wrong options."""

    def __init__(self, name, description, epilog, codes=(0, 2)):
        super().__init__(
            prog="nvpm " + name, description=description, epilog=epilog, formatter_class=Formatter
        )
        self.codes = codes

    def exit(self, status=0, message=None):
        super().exit(self.codes[status != 0], message)


def say(lines):
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 0


def status(machine, words):
    from . import printers, report, text

    parser = Parser(
        "status",
        "Reports what decides about GPUDirect RDMA on this machine, and what to do where something is wrong.",
        "Exit codes, those of the LSB: 0 the module is loaded, 3 it is not, 4 nobody knows. With --prometheus always 0, so that a failed collector differs from an unloaded module.",
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="one object for machines")
    forms.add_argument(
        "--prometheus",
        action="store_true",
        help="metrics for the node exporter's textfile collector",
    )
    options, found = parser.parse_args(words), report.report(machine)
    if options.prometheus:
        return say(printers.as_metrics(found))
    say(printers.as_json(found) if options.json else text.Text(found).lines())
    return found.code


def check(machine, words):
    from . import printers, report

    parser = Parser(
        "check",
        "Says in one line whether GPUDirect RDMA works here, for Nagios and its kin.",
        "Exit codes: 0 OK, 1 WARNING (works but could do better), 2 CRITICAL (something does not work), 3 UNKNOWN.",
        codes=(printers.UNKNOWN, printers.UNKNOWN),
    )
    parser.add_argument(
        "-i",
        "--ignore",
        metavar="ID",
        action="append",
        default=[],
        help="what is not to be judged, with commas between; nvpm status --json has the IDs, and a star at the end stands for whatever follows: use/failed_*",
    )
    ignored = ",".join(parser.parse_args(words).ignore).split(",")
    try:
        line, code = printers.as_plugin(report.report(machine), ignored)
    except Exception as error:  # a monitor has to see it, whatever it is
        line, code = (
            printers.plugin(printers.UNKNOWN, f"{type(error).__name__}: {error}"),
            printers.UNKNOWN,
        )
    return say([line]) or code


def regions(machine, words):
    from . import regions as listing

    parser = Parser(
        "regions",
        "Lists which process has which GPU memory registered.",
        "Exit codes: 0 the list was read, 1 it cannot be, 2 wrong options, 3 the module is not loaded.",
    )
    parser.add_argument("--json", action="store_true", help="one object for machines")
    form = listing.as_json if parser.parse_args(words).json else listing.as_text
    try:
        return say(form(machine))
    except listing.Unreadable as reason:
        sys.stderr.write(f"nvpm regions: {reason.args[1]}\n")
        return reason.args[0]


def selftest(machine, words):
    from .selftest import main

    return main.main(machine, words)


def usage(machine, words):
    """The commands; without any, the state, too."""
    from . import report, text

    return say(
        [USAGE.rstrip()] + ([] if words else ["", text.Text(report.report(machine)).headline()])
    )


# What the service's script and the packages ask.

IN_USE = 75  # EX_TEMPFAIL of sysexits.h: try again later


def explain(machine, words):
    """explain MODULE [TEXT]: what to do if modprobe and the kernel have said TEXT of it; without TEXT, if our module is not installed."""
    from .explain import Advice

    return say([Advice(machine, *words).advice() if words[1:] else Advice(machine)["install"]])


def holders(machine, _words):
    from .regions import holders as who

    return say(who(machine))


def leave(machine, words):
    """leave SCRIPT: what a package does with the module that is being removed. The service's script may be gone, or be that of an earlier version,
    because it is configuration. It fails with IN_USE, and with that alone, while programs have GPU memory registered: nothing else may
    keep a package from being removed."""
    from .machine import MODULE
    from .place import kernel_of_another

    if kernel_of_another(machine):
        return say(
            [
                "nv_peer_mem: the kernel belongs to another system (chroot or container): its module is left alone."
            ]
        )
    if (
        not os.access(words[0], os.X_OK)
        or not subprocess.call([words[0], "stop"])
        or not machine.loaded(MODULE)
    ):
        return 0
    if machine.text("/sys/module/nv_peer_mem/refcnt") not in ("", "0"):
        return IN_USE
    return say(["nv_peer_mem: the module stays loaded until the next boot."])


COMMANDS = {
    command.__name__: command
    for command in (status, regions, check, selftest, explain, holders, leave)
}


def main(machine, words):
    name = words[0] if words else "help"
    if name in COMMANDS:
        return COMMANDS[name](machine, words[1:])
    if name in ("help", "-h", "--help"):
        return usage(machine, words)
    sys.stderr.write(f"nvpm: there is no command '{name}'.\n{USAGE}")
    return 2
