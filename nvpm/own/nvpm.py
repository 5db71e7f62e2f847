# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Messages of nvpm on its standard error, and of the commands that the packages call. The values
that `nvpm status` prints are explained where they stand."""

from .model import FINE, FOLLOWS, Group, Own

NVPM = Group(
    "nvpm",
    (
        Own(
            "nvpm-not-installed",
            "not installed: there is no <*>/nvpm",
            "the program's link is there, and its files are not",
            "Install the package nvidia-peer-memory (RPM: nvidia_peer_memory) again",
        ),
        Own(
            "nvpm-no-python",
            "this needs <Python 3|all of Python 3>",
            "Python 3, or a part of its standard library, is not installed",
            "Install the package python3 (not only python3-minimal)",
        ),
        Own(
            "nvpm-no-command",
            "nvpm: there is no command '",
            "nvpm has no command of this name",
            "`nvpm help` lists the commands",
        ),
        Own(
            "nvpm-output",
            "nvpm: what it has to say cannot be written",
            "the standard output is closed, or its disk is full",
            "Make room, or write somewhere else",
        ),
        Own(
            "nvpm-file-not-written",
            "nvpm <report|selftest|compare>: <w> cannot be written",
            "the file cannot be written; the end of the line says why",
            "Choose another file, or make room",
        ),
        Own(
            "nvpm-page-not-written",
            "nvpm selftest: <w> is not written",
            "the test was interrupted, so its page was not written",
            "Run it again",
        ),
        Own(
            "nvpm-report-shown",
            "nvpm report: nothing is written yet",
            "the report was printed, and not written to a file",
            "`nvpm report --write FILE.tar.gz`",
            kind=FINE,
        ),
        Own(
            "nvpm-no-names",
            "the name service, which knows the names of users, does not answer",
            "the service that has the names of users, in most cases LDAP or SSSD, has not answered "
            "within seconds, so nvpm prints numbers",
            "`id NUMBER` says the name when the service answers again",
            kind=FOLLOWS,
        ),
        Own(
            "nvpm-compare-first",
            "nvpm compare: only the first <*> nodes are compared",
            "the inputs have more nodes than any fleet, so one of them may be no output of nvpm",
            "Look which file has so many names, and leave it out",
            kind=FOLLOWS,
        ),
        Own(
            "nvpm-process-left",
            "does not end, though it was killed, and is left",
            "the kernel, or a driver in it, holds a program that nvpm has started: in most cases "
            "the NVIDIA driver hangs",
            "`dmesg` and `/proc/NUMBER/stack` of that process say more. `nvpm report --write "
            "FILE.tar.gz`, then reboot if it stays",
        ),
        Own(
            "nvpm-in-use",
            "nv_peer_mem: <w> stop",
            "the service's script did not end in time, or could not be run, while a package was "
            "being removed",
            "`/etc/init.d/nv_peer_mem stop` by hand shows why",
        ),
        Own(
            "nvpm-stays-loaded",
            "nv_peer_mem: the module stays loaded until the next boot",
            "the service could not unload the module, and the package is removed nevertheless",
            "Nothing: the next boot is without the module",
        ),
        Own(
            "nvpm-kernel-of-another",
            "nv_peer_mem: the kernel belongs to another system (chroot or container)",
            "the package is removed in a chroot or a container, whose kernel and module belong "
            "to the host",
            kind=FINE,
        ),
        Own(
            "nvpm-regions-not-loaded",
            "nv_peer_mem is not loaded: no GPU memory is registered through it",
            "there is no list of registrations, because the module is not loaded",
            "`nvpm` says whether this machine needs it, and how to load it",
            like="NO_CLIENT",
        ),
        Own(
            "nvpm-regions-too-old",
            "that is loaded is older than this command and keeps no list",
            "the module was loaded before the package was updated",
            "When nobody uses it: `modprobe -r nv_peer_mem && modprobe nv_peer_mem`",
        ),
        Own(
            "nvpm-regions-not-root",
            "only root can read who has memory registered",
            "a user other than root has called `nvpm regions`",
            "`sudo nvpm regions`",
        ),
        Own(
            "nvpm-regions-capability",
            "that takes the capability CAP_SYS_ADMIN",
            "root of a container may not read the list",
            "Run `nvpm regions` as root on the host",
        ),
        Own(
            "nvpm-no-device",
            "there is no GPU and no RDMA device",
            "no device has the name that was given",
            "Take a name of those that the line lists",
        ),
        Own(
            "nvpm-whole-machine",
            "is about the whole machine: name no DEVICE with it",
            "this form of `nvpm status` takes no device",
            "Leave out the device, or the option",
        ),
        Own(
            "nvpm-no-file",
            "nvpm <explain|compare>: error: there is no <*>",
            "no file has the name that was given",
            "Correct the name",
        ),
        Own(
            "nvpm-explain-no-log",
            "<which log? Name files|--since needs a time, and --journal>",
            "no log was named, or a time without `--journal`",
            "`nvpm explain FILE`, `dmesg | nvpm explain -`, or `nvpm explain --journal --since "
            "TIME`",
        ),
        Own(
            "nvpm-explain-not-read",
            "nvpm explain: there is no log that can be read",
            "no file that was named could be read; the lines above say why",
            "Name another file; the journal and dmesg often need root",
        ),
        Own(
            "nvpm-explain-empty",
            "nvpm explain: <*>. Did the program write its log elsewhere?",
            "the file that was named has no lines, so nvpm can say nothing about the program",
            "Look for the log: the program may write to its standard error, which `2>&1` joins "
            "with its output",
        ),
        Own(
            "nvpm-explain-packed",
            "nvpm explain: <*> is packed by <w>: unpack it first",
            "the file is compressed in a way that Python's own library cannot read",
            "Run the command in the line, and give the unpacked file to `nvpm explain`",
        ),
        Own(
            "nvpm-explain-nested",
            "nvpm explain: <*> is an archive within <n> others: unpack it first",
            "nvpm reads an archive within an archive, and no archive that lies deeper",
            "Unpack the outer archive, and give its members to `nvpm explain`",
        ),
        Own(
            "nvpm-explain-journal-file",
            "nvpm explain: <*> is a file of the journal",
            "the journal's files are no text, and only journalctl reads them",
            "`nvpm explain --journal` on the node, or `journalctl --file=FILE | nvpm explain -`",
        ),
        Own(
            "nvpm-explain-no-text",
            "nvpm explain: <w> is no text",
            "the file is a program, an image or other data, and no log",
            "Name a log",
        ),
        Own(
            "nvpm-explain-failed",
            "Only root may read this log on many systems",
            "journalctl or dmesg has failed; the line quotes the reason",
            "`sudo nvpm explain --journal`, or `sudo nvpm explain --dmesg`",
        ),
        Own(
            "nvpm-compare-nothing",
            "nvpm compare: there is nothing to compare",
            "no input has the output of `nvpm status --json` or `nvpm selftest --json`",
            "Collect it on each node: `nvpm status --json`",
        ),
        Own(
            "nvpm-compare-no-names",
            "nvpm compare: error: name files or directories",
            "`nvpm compare` was called without inputs",
            "Name files or directories, or pipe the output of many nodes into it",
        ),
        Own(
            "nvpm-compare-nodes",
            "<no nodes are named|is not a list of nodes such as|is not a list of numbers such as>",
            "the list of nodes after `--expect` is not understood",
            "Write names, or ranges such as `node[1-5,7]`",
        ),
        Own(
            "nvpm-compare-too-many",
            "has more than <n> <nodes|numbers>",
            "the list of nodes after `--expect` is longer than nvpm reads",
            "Name the nodes in several calls",
        ),
        Own(
            "nvpm-compare-newer",
            "and this nvpm reads up to schema",
            "a node has a newer nvpm than this one",
            "Compare with that version of nvpm",
        ),
        Own(
            "nvpm-option-number",
            "<is not a size from 1|is not a number>",
            "the value of an option is not a number, or too large",
            "`nvpm COMMAND --help` says which values an option takes",
        ),
        Own(
            "nvpm-selftest-html",
            "--html shows rates: name --bandwidth with it",
            "`nvpm selftest --html` needs rates",
            "Add `--bandwidth`",
        ),
    ),
)
RUN = Group(
    "nvpm-run",
    (
        Own(
            "run-as-it-is",
            "nvpm run: <*> runs as it is",
            "the preloaded library is not needed here, or cannot help; the line says why, and "
            "the program was started without it",
            "If the line says `cannot help here`: what it names is missing for dma-buf (`nvpm "
            "status --all`)",
            kind=FINE,
        ),
        Own(
            "run-no-library",
            "nvpm run: there is no libnvpm_preload.so",
            "the preloaded library is not installed, so the program was not started",
            "Install nvidia-peer-memory-preload (RPM: nvidia_peer_memory-preload), or name the "
            "file with `--library`",
        ),
        Own(
            "run-passed-over",
            "nvpm run: <w> is passed over",
            "another user could have written this library, which would run with your rights",
            "If you trust it: `--library FILE`",
        ),
        Own(
            "run-name-of-library",
            "no library can be preloaded whose name has a blank or a colon",
            "the dynamic linker splits `LD_PRELOAD` at blanks and colons",
            "Copy the library to a path without them",
        ),
        Own(
            "run-not-started",
            "was not started: <*>. Name the right file with --library",
            "the library is damaged, or is for another processor, so the program was not started",
            "Name the right file with `--library`",
        ),
        Own(
            "run-no-verbs",
            "nvpm run: there is no libibverbs.so.1 here",
            "the dynamic linker finds no libibverbs. A program that looks for one, such as NCCL, "
            "takes TCP without an error; a Python wheel may bring its own",
            "Install libibverbs1 (RPM: libibverbs) and ibverbs-providers, in the container if the "
            "program runs in one",
        ),
        Own(
            "run-no-auditor",
            "nvpm run: --audit needs glibc 2.35 or later",
            "an older glibc does not show an auditor all calls, and makes a program with an "
            "auditor slow, so the program was started with the preloaded library alone",
            "Nothing, if no library of the program is opened with `RTLD_DEEPBIND`. Else a "
            "container with a newer glibc",
        ),
        Own(
            "run-no-program",
            "error: which PROGRAM?",
            "`nvpm run` was called without a program",
            "`nvpm run PROGRAM`",
        ),
    ),
)
GROUPS = (NVPM, RUN)
