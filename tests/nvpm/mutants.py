# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lists mistakes in nvpm, each with the test that notices the mistake (tests/try_mutants.py). The
mistakes are a sample from each part of nvpm. More mistakes were tried while the tests were
written."""

STATUS = "test_tables.py::test_status"
VARIED = "test_tables.py::test_varied"
COMMANDS = "test_tables.py::test_commands"
SELFTEST = "test_tables.py::test_selftest"
JUDGED = "test_tables.py::test_judged"

MUTANTS = [
    (
        f"{VARIED}[VMD: a domain of its own below the root complex of another]",
        "read/pci.py",
        'place.rpartition("/pci")[2]',
        'place.partition("/pci")[2]',
    ),
    (
        f"{VARIED}[NVIDIA's devices that are no GPU, others' GPUs, and a GPU of another class]",
        "read/pci.py",
        "vendor == NVIDIA and kind.startswith(DISPLAY)",
        "vendor == NVIDIA",
    ),
    (
        f"{VARIED}[neither end says its node, on a machine with two nodes]",
        "facts/topology.py",
        "-1 and not several_nodes(machine)",
        "-1",
    ),
    (
        f"{STATUS}[bridges that send packets up to the root complex]",
        "facts/topology.py",
        "REQUEST_REDIRECT | COMPLETION_REDIRECT)",
        "REQUEST_REDIRECT)",
    ),
    (
        f"{VARIED}[one of two GPUs is coherent: the other's data goes through the processor]",
        "facts/devices.py",
        "gpus(machine) and all(gpu.coherent",
        "gpus(machine) and any(gpu.coherent",
    ),
    (
        f"{VARIED}[bits of the list of capabilities that are reserved]",
        "facts/devices.py",
        "at = config[at // 4] >> 8 & 0xFF",
        "at = config[at // 4] >> 8",
    ),
    (
        f"{VARIED}[versions, licences and options that look like others]",
        "read/doubts.py",
        'CoherentGPUMemoryMode=driver"',
        'CoherentGPUMemoryMode="',
    ),
    (
        f"{VARIED}[the module that has the verbs of a device's driver (mana)]",
        "read/dma_buf.py",
        '"mana": "mana_ib"',
        '"mana": "mana"',
    ),
    (
        f"{VARIED}[a function that two modules have: the kernel's list names the used one first]",
        "read/kernel_symbols.py",
        "in reversed(found)",
        "in found",
    ),
    (
        f"{VARIED}[two GPUs: one pair is refused, and one UUID begins with the other]",
        "read/pairs.py",
        "len(row) == 3",
        "len(row) >= 3",
    ),
    (
        f"{VARIED}[a module whose name begins with that of another]",
        "facts/detection.py",
        'f"^{PEERMEM} "',
        'f"^{PEERMEM}"',
    ),
    (
        f"{VARIED}[a container whose engine leaves no file, and a machine that is no container]",
        "read/place.py",
        "^flags.* hypervisor",
        "hypervisor",
    ),
    (
        f"{VARIED}[each right and each limit alone]",
        "facts/access.py",
        "mode & OPEN != OPEN",
        "mode & OPEN == 0",
    ),
    (
        f"{STATUS}[the memory that may be locked by daemons that start jobs]",
        "facts/access.py",
        r"^Uid:\s+0\s+0\s",
        r"^Uid:\s+\d+\s+0\s",
    ),
    (
        f"{STATUS}[a node without a GPU that has the packages: a single line needs attention]",
        "show/printers.py",
        "any(matches(NO_GPU, pattern) for pattern in patterns)",
        "True",
    ),
    (
        f"{VARIED}[one GPU is a virtual machine's: numbers are those of the driver]",
        "show/answer.py",
        "enumerate(ways.driven_gpus(machine))",
        "enumerate(gpus(machine))",
    ),
    (
        f"{VARIED}[errors come before warnings, in any section]",
        "show/text.py",
        "for verdict in (BAD, WARN):",
        "for verdict in (WARN, BAD):",
    ),
    (
        f"{VARIED}[a star within an identifier stands for itself]",
        "show/printers.py",
        'pattern.endswith("*") and fact.id.startswith(pattern[:-1])',
        '"*" in pattern and fact.id.startswith(pattern.split("*")[0])',
    ),
    (
        f"{VARIED}[users of registrations, and registrations that keep the module loaded]",
        "read/regions.py",
        'if one.state != "orphaned"',
        'if one.state == "mapped"',
    ),
    (
        f"{VARIED}[messages of the kernel over several lines, and about neighbours]",
        "facts/advice.py",
        "re.search(pattern, self.text, re.DOTALL)",
        "re.search(pattern, self.text)",
    ),
    (
        f"{VARIED}[an unfinished archive does not stay; and a program has its signals]",
        "bugreport.py",
        "        if kind:\n",
        "        if False:\n",
    ),
    (
        "test_report.py::test_names_in_any_order",
        "redact/redactor.py",
        "range(min(len(parts), LONGEST_LABEL), 0, -2)",
        "range(1, min(len(parts), LONGEST_LABEL) + 1, 2)",
    ),
    (
        "test_report.py::test_values_of_the_kernel_stay",
        "redact/patterns.py",
        "f{3}[0-9a-f]|dead|",
        "f{3}[0-9a-f]|",
    ),
    (
        "test_report.py::test_whole_crash",
        "read/kernel_log.py",
        "left = CRASH_LINES",
        "left = 10",
    ),
    (
        "test_report.py::test_people",
        "redact/names.py",
        "FIRST_PERSON <= user.pw_uid",
        "FIRST_PERSON < user.pw_uid",
    ),
    ("test_conf.py", "read/conf.py", '"^export +"', '"^export *"'),
    ("test_conf.py", "read/conf.py", 'rstrip(b" ;")', 'rstrip(b" ")'),
    (
        "test_foreign.py::test_directories_of_others",
        "trust.py",
        "stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX",
        "found.st_mode & stat.S_ISVTX",
    ),
    (
        "test_foreign.py::test_python_module_beside",
        "__main__.py",
        'if os.path.abspath(name or ".") != place]',
        'if os.path.abspath(name or ".") != place] + [os.path.dirname(place)]',
    ),
    ("test_programs.py::test_nothing_to_read", "read/programs.py", "stdin=nothing", "stdin=None"),
    (
        f"{SELFTEST}[each failure has a message of its own, and leaves nothing]",
        "selftest/verbs.py",
        "found if found > 0 else ctypes.get_errno()",
        "found",
    ),
    # ---- ways that work, beside ways that are only installed ----
    (
        f"{JUDGED}[GPUs that take no part: a GeForce, also with the other module and with dma-buf]",
        "read/products.py",
        r'r"\bGeForce\b"',
        r'r"^GeForce\b"',
    ),
    (
        f"{JUDGED}[a device with a driver of its vendor's own, which may ask]",
        "read/peers.py",
        'if not driver or "O" in',
        'if "O" not in',
    ),
    (
        f"{JUDGED}[a restart of the stack takes the default route away: by a card, a bond, a VLAN, "
        "or IPv6]",
        "read/network.py",
        "found.setdefault(upper, card)",
        "pass",
    ),
    (
        f"{JUDGED}[a card without a driver, with half a stack, and with refused modules]",
        "facts/security.py",
        'trusted is None and "DKMS" not in signer',
        "trusted is None",
    ),
    (
        f"{JUDGED}[a driver that crashes the kernel when a process ends, unless HMM is off or it "
        "is the proprietary one]",
        "facts/bad_versions.py",
        "return BAD if is_open and not is_off",
        "return BAD if is_open",
    ),
    (
        f"{JUDGED}[EFA asks NVIDIA's driver itself, and says whether it can]",
        "read/peers.py",
        'nic.pci.text("p2p").startswith("NVIDIA")',
        "True",
    ),
    (
        f"{STATUS}[how far the RDMA device is from the GPU]",
        "read/root_complex.py",
        ">= ZEN",
        ">= 0",
    ),
    (
        f"{SELFTEST}[sustained transfers of each pair by each way, as a matrix; the slow cell is "
        "the one that is marked]",
        "selftest/judge.py",
        "if not slower and rate < SHARE * most:",
        "if not slower and rate < most:",
    ),
    (
        "test_compare.py::test_forms",
        "compare/inputs.py",
        "        elif RULE.match(line):",
        "        elif False:",
    ),
    ("test_compare.py::test_equal_nodes", "compare/features.py", 'if "idle" in value or', "if"),
    (
        "test_compare.py::test_odd_nodes",
        "compare/groups.py",
        "(len(group.nodes), group.nodes[0])",
        "group.nodes[0]",
    ),
    (
        "test_compare.py::test_selftests",
        "compare/measured.py",
        "if rate >= SHARE * usual:",
        "if rate >= usual:",
    ),
    (
        "test_explain_logs.py::test_log",
        "explain/judge.py",
        "- late +",
        "+ late +",
    ),
    (
        "test_explain_logs.py::test_log",
        "explain/scan.py",
        "chosen = special if explained else",
        "chosen = special if not explained else",
    ),
    (
        "test_explain_logs.py::test_memory_is_constant",
        "explain/scan.py",
        "if len(shapes) < MOST_SHAPES:",
        "if True:",
    ),
    (
        "test_explain_logs.py::test_few_ranks",
        "explain/scan.py",
        "if shape.ranked:",
        "if False:",
    ),
    (
        "test_explain_logs.py::test_node_chooses_between_causes",
        "explain/here.py",
        "elif node.contradict and one.sure() < NAMED:",
        "elif False:",
    ),
    (
        "test_explain_logs.py::test_cut_compressed",
        "explain/inputs.py",
        "yield inner, guarded(name, stream)",
        "yield inner, stream",
    ),
    (
        "test_explain_logs.py::test_redaction",
        "explain/show.py",
        "text = self.quoted(hit.text)",
        "text = hit.text",
    ),
    (
        "test_explain.py::test_conditions",
        "explain/conditions.py",
        "return value in values if value else bool(values)",
        "return bool(values)",
    ),
    (
        "test_explain.py::test_each_message_is_found",
        "explain/texts.py",
        "word.start() > 0 and word.end() < len(part)",
        "False",
    ),
    (
        "test_monitoring.py::test_line_of_a_bad_machine",
        "show/printers.py",
        'chosen = (fact._replace(advice="")',
        "chosen = (fact",
    ),
    (
        "test_reader.py::test_one_file_of_an_area_is_asked",
        "read/reader.py",
        "if area in self.silences:",
        "if path in self.silences:",
    ),
    (
        "test_reader.py::test_all_files_together_have_a_limit",
        "read/reader.py",
        "max(LEAST, min(ONE_FILE, self.left))",
        "max(LEAST, ONE_FILE)",
    ),
    (
        "test_reader.py::test_left_by_an_earlier_nvpm",
        "read/reader.py",
        "min(known, one, key",
        "max(known, one, key",
    ),
    (
        "test_reader.py::test_not_left_by_nvpm",
        "read/reader.py",
        "KILLED = 1 << (signal.SIGKILL - 1)",
        "KILLED = 3 << (signal.SIGKILL - 2)",
    ),
    (
        "test_reader.py::test_process_of_another_user",
        "read/reader.py",
        "return bool(killed) and os.stat(place).st_uid == os.geteuid()",
        "return bool(killed)",
    ),
    (
        "test_reader.py::test_no_file_stays_open",
        "read/reader.py",
        "if int(name) > 2 and",
        "if int(name) > 9 and",
    ),
    (
        "test_reader.py::test_report_has_all_other_facts",
        "bugreport.py",
        "if command[0] == NVIDIA_SMI and",
        'if command[1:2] == ("topo",) and',
    ),
    (
        "test_reader.py::test_driver_that_does_not_answer",
        "facts/status.py",
        "[*silence.facts(machine), *others]",
        "[*others, *silence.facts(machine)]",
    ),
    (
        "test_limits.py::test_nothing_is_left_out_of_a_short_list",
        "read/regions.py",
        "if len(data) == most else data",
        "if data else data",
    ),
    (
        "test_limits.py::test_header_of_an_archive",
        "explain/inputs.py",
        "    tarfile.GNUTYPE_LONGLINK,\n",
        "",
    ),
    (
        "test_limits.py::test_xz",
        "explain/inputs.py",
        "memlimit=XZ_MEMORY",
        "memlimit=1 << 40",
    ),
    (
        "test_limits.py::test_many_members",
        "explain/inputs.py",
        "archive.members = []",
        "archive.offset += 0",
    ),
    (
        "test_limits.py::test_rates_that_are_no_rates",
        "compare/measured.py",
        "0 <= rate <= FASTEST",
        "rate <= FASTEST",
    ),
    (
        "test_limits.py::test_one_bad_node",
        "compare/inputs.py",
        "except RecursionError:",
        "except MemoryError:",
    ),
    (
        "test_report.py::test_a_name_that_one_place_gives_away",
        "bugreport.py",
        "        redactor.learn(said)\n",
        "",
    ),
    (
        "test_report.py::test_a_process_that_is_called_like_a_word",
        "redact/redactor.py",
        "and plain not in self.ordinary",
        'and name not in self.ordinary or plain == "error"',
    ),
    (
        "test_report.py::test_running_processes",
        "redact/names.py",
        "owner is not None and FIRST_PERSON <= owner",
        "owner is not None and FIRST_PERSON < owner",
    ),
    (
        "test_report.py::test_processes_of_the_system",
        "redact/redactor.py",
        "if OF_THE_SYSTEM.fullmatch(bare)",
        "if OF_THE_SYSTEM.match(bare)",
    ),
    (
        "test_report.py::test_private",
        "redact/patterns.py",
        "(?!ffff|5[56]|7[ef])",
        "(?!ffff|5[56]|7e)",
    ),
]
