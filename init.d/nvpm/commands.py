# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands, and their options."""
import argparse
import os
import sys

from .machine import Machine

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


class Parser(argparse.ArgumentParser):
    """Of one command. CODE is its exit code for wrong options."""

    def __init__(self, name, description, epilog, code=2, help_code=0):
        super().__init__(prog="nvpm " + name, description=description, epilog=epilog, formatter_class=_Formatter)
        self.code, self.help_code = code, help_code

    def exit(self, status=0, message=None):
        super().exit(self.code if status else self.help_code, message)


class _Formatter(argparse.HelpFormatter):
    def add_usage(self, usage, actions, groups, prefix=None):
        super().add_usage(usage, actions, groups, prefix or "Usage: ")


def status(machine, words):
    from . import printers, report, text
    parser = Parser("status", "Prints what decides about GPUDirect RDMA on this machine, and what to do where it is not good.",
                    "Exit codes, those of the LSB: 0 the module is loaded, 3 it is not, 4 nobody knows; with --prometheus always 0, "
                    "because a metric that says so must not look like one that was not written.")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="one object for machines")
    forms.add_argument("--prometheus", action="store_true", help="metrics, for the node exporter's textfile collector")
    options = parser.parse_args(words)
    found = report.report(machine)
    if options.prometheus:
        sys.stdout.write(printers.as_metrics(found))
        return 0
    sys.stdout.write((printers.as_json if options.json else text.text)(found))
    return found.code


def check(machine, words):
    from . import printers, report
    parser = Parser("check", "Says in one line whether GPUDirect RDMA works here, for Nagios and its kin.",
                    "Exit codes: 0 OK, 1 WARNING (works but could do better), 2 CRITICAL (something does not work), 3 UNKNOWN.",
                    code=printers.UNKNOWN, help_code=printers.UNKNOWN)
    parser.add_argument("-i", "--ignore", metavar="ID", action="append", default=[], help=(
        "what is not to be judged, with commas between; nvpm status --json has the IDs, and a star at the end stands for whatever "
        "follows: use/failed_*"))
    ignored = ",".join(parser.parse_args(words).ignore).split(",")
    try:
        line, code = printers.as_plugin(report.report(machine), ignored)
    except Exception as error:  # whatever it is, a monitor is to see it
        line, code = printers.plugin(printers.UNKNOWN, "%s: %s" % (type(error).__name__, error)), printers.UNKNOWN
    sys.stdout.write(line)
    return code


def regions(machine, words):
    from . import regions as listing
    parser = Parser("regions", "Lists which process has which GPU memory registered.",
                    "Exit codes: 0 the list was read, 1 it cannot be, 2 wrong options, 3 the module is not loaded.")
    parser.add_argument("--json", action="store_true", help="one object for machines")
    try:
        sys.stdout.write((listing.as_json if parser.parse_args(words).json else listing.text)(machine))
    except listing.Unreadable as reason:
        sys.stderr.write("nvpm regions: %s\n" % reason)
        return reason.code
    return 0


def selftest(machine, words):
    from .selftest import main
    return main.main(machine, words)


def say_help(_machine, _words):
    sys.stdout.write(USAGE)
    return 0


# ---- what the service's script and the packages ask ----


def explain(machine, words):
    """explain MODULE [TEXT]: what to do about a module of which modprobe and the kernel have said TEXT; without it, about
    one that is not installed."""
    from .explain import Advice
    advice = Advice(machine, *words)
    sys.stdout.write((advice.advice() if words[1:] else advice.to_install()) + "\n")
    return 0


def holders(machine, _words):
    from .regions import holders as who
    sys.stdout.write("".join(line + "\n" for line in who(machine)))
    return 0


def leave(machine, words):
    """leave SCRIPT: what a package that is removed does with the module, by the service's script, which may be gone, or that
    of an earlier version: it is configuration. While programs have GPU memory registered, that fails."""
    from .place import kernel_of_another
    if kernel_of_another(machine):
        print("nv_peer_mem: the kernel belongs to another system (chroot or container): its module is left alone.")
    elif os.access(words[0], os.X_OK):
        os.execv(words[0], [words[0], "stop"])
    return 0


COMMANDS = {"status": status, "regions": regions, "check": check, "selftest": selftest, "help": say_help, "--help": say_help,
            "-h": say_help, "explain": explain, "holders": holders, "leave": leave}


def main(words, root=""):
    machine = Machine(root)
    if not words:
        from . import report, text
        sys.stdout.write("%s\n%s\n" % (USAGE, text.headline(report.report(machine))))
        return 0
    if words[0] not in COMMANDS:
        sys.stderr.write("nvpm: there is no command '%s'.\n%s" % (words[0], USAGE))
        return 2
    return COMMANDS[words[0]](machine, words[1:])
