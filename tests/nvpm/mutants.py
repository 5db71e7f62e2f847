# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lists mistakes in nvpm, each with the test that notices the mistake (tests/try_mutants.py). The
mistakes are a sample from each part of nvpm. More mistakes were tried while the tests were
written."""

STATUS = "test_tables.py::test_status"
VARIED = "test_tables.py::test_varied"
COMMANDS = "test_tables.py::test_commands"
SELFTEST = "test_tables.py::test_selftest"
JUDGED = "test_tables.py::test_judged"
PROGRAMS = "test_tables.py::test_programs"

MUTANTS = [
    (
        "test_programs.py::test_interrupted[15]",
        "__main__.py",
        "for hangup_or_end in (signal.SIGHUP, signal.SIGTERM):",
        "for hangup_or_end in (signal.SIGHUP,):",
    ),
    (
        f"{VARIED}[the build of the loaded module, under each name, and without a module]",
        "show/printers.py",
        'loaded_version(machine, name) if name else ""',
        "loaded_version(machine, name)",
    ),
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
        f"{STATUS}[an mlx5 device without ODP, which says yes to a program that asks, and refuses "
        "each dma-buf]",
        "read/dma_buf.py",
        "version[2:] >= [least]",
        "version[2:] > [least]",
    ),
    (
        f"{STATUS}[an mlx5 device without ODP, which says yes to a program that asks, and refuses "
        "each dma-buf]",
        "read/dma_buf.py",
        "said == ask.WITHOUT_ODP and nic.driver() == NEEDS_ODP",
        "said == ask.WITHOUT_ODP",
    ),
    (
        f"{STATUS}[an mlx5 device without ODP, which says yes to a program that asks, and refuses "
        "each dma-buf]",
        "read/dma_buf.py",
        'if patched and "O" not in',
        'if patched or "O" not in',
    ),
    (
        f"{SELFTEST}[a device is asked whether it takes a dma-buf, in a process that may hang or "
        "crash]",
        "selftest/verbs.py",
        "general_caps & abi.IBV_ODP_SUPPORT)",
        "general_caps)",
    ),
    (
        f"{SELFTEST}[a library or a driver that does not say whether a device pages on demand "
        "(shorter)]",
        "selftest/verbs.py",
        "whole.sz < ctypes.sizeof(abi.verbs_context) or ",
        "",
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
        "facts/outcomes.py",
        'f"^{name} "',
        'f"^{name}"',
    ),
    (
        f"{PROGRAMS}[both ways: most programs take dma-buf first]",
        "facts/consumers.py",
        "UCX_TRIES = (dma_buf(), pointer(*UCX_SIGNS))",
        "UCX_TRIES = (pointer(*UCX_SIGNS), dma_buf())",
    ),
    (
        f"{PROGRAMS}[a device that takes no dma-buf, and the open driver]",
        "facts/outcomes.py",
        "            looks = False\n",
        "            looks = True\n",
    ),
    (
        f"{PROGRAMS}[a device that takes no dma-buf, and the open driver]",
        "facts/outcomes.py",
        "chooses and exported(machine)",
        "chooses",
    ),
    (
        f"{PROGRAMS}[a device that says yes to a program that asks, and refuses each dma-buf "
        "(mlx5 without ODP)]",
        "facts/outcomes.py",
        "(device.misleads and not attempt.setting)",
        "device.misleads",
    ),
    (
        f"{PROGRAMS}[EFA of the first generation, without a peer memory of its own]",
        "facts/consumers.py",
        '("0xefa0", "0xefa1", "0xefa2")',
        '("0xefa0", "0xefa1")',
    ),
    (
        f"{PROGRAMS}[a device that asks the RDMA core, beside one that never does]",
        "preload.py",
        "if any(pair == [DMA_BUF]",
        "if all(pair == [DMA_BUF]",
    ),
    (
        f"{PROGRAMS}[both ways: most programs take dma-buf first]",
        "facts/detection.py",
        "found.way == DMA_BUF and MODULE in ways",
        "found.way == DMA_BUF and MODULE not in ways",
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
        "read/names.py",
        "enumerate(ways.driven_gpus(machine))",
        "enumerate(ways.gpus(machine))",
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
        f"{STATUS}[counters, and processes that may hold registrations]",
        "facts/use.py",
        'if one.state == "revoking"]',
        'if one.state == "revoked"]',
    ),
    (
        "test_revoking.py::test_revocation_that_ends",
        "facts/use.py",
        "any(one.is_older(later) for later in still)",
        "still",
    ),
    (
        "test_revoking.py::test_memory_that_is_registered_again",
        "read/regions.py",
        "later.age >= self.age",
        "later.age >= 0",
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
        "set(owners[1].split() if owners else [])",
        "set(owners[1].split()[1:2] if owners else [])",
    ),
    (
        "test_name_service.py::test_users_are_shown_by_number",
        "read/reader.py",
        "self.nameless = True",
        "pass",
    ),
    (
        "test_name_service.py::test_report",
        "read/machine.py",
        'text = self.all_text("/etc/passwd")',
        'text = ""',
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
    (
        "test_monitoring.py::test_long_lines",
        "show/printers.py",
        "PAIRS = 8",
        "PAIRS = 80",
    ),
    (
        f"{SELFTEST}[everything is good: a line for each pair, and nobody asks status]",
        "selftest/cuda.py",
        "byref(c_uint(1)), attribute",
        "byref(c_uint(0)), attribute",
    ),
    (
        f"{SELFTEST}[each way: by pointer, and as dma-buf]",
        "selftest/cuda.py",
        "start, length = c_uint64(self.address), c_size_t(self.whole)",
        "start, length = c_uint64(self.address), c_size_t(self.size)",
    ),
    (
        f"{SELFTEST}[several of both, by LID and by GID]",
        "selftest/cuda.py",
        "byref(context), self.device)",
        "byref(context), c_int(self.index))",
    ),
    (
        "test_selftest.py::test_address_of_a_port",
        "selftest/port.py",
        "not_ipv4, link_local)",
        "not_ipv4, not link_local)",
    ),
    (
        "test_selftest.py::test_rate_of_a_link",
        "selftest/limits.py",
        "speed > SLOW",
        "speed >= SLOW",
    ),
    (
        "test_selftest.py::test_slow_rates",
        "selftest/judge.py",
        "flow.rates()[direction] or 0)",
        "flow.rates()[0] or 0)",
    ),
    (
        "test_selftest.py::test_reasons_of_a_pair",
        "selftest/main.py",
        "{*fact.section.split(), *fact.name.split()}",
        "{*fact.section.split()}",
    ),
    (
        f"{JUDGED}[one of two GPUs has a BAR1 that can be larger, and one has a BAR1 of a "
        "fixed size]",
        "facts/use.py",
        "any(gpu.largest_bar1() >",
        "all(gpu.largest_bar1() >",
    ),
    (
        f"{JUDGED}[a restart of the stack takes the default route away: by a card, a bond, a "
        "VLAN, or IPv6]",
        "read/network.py",
        ' and fields[7:8] in ([], ["00000000"])',
        "",
    ),
    (
        f"{COMMANDS}[one device, by its name, its address, or its number in nvidia-smi]",
        "show/text.py",
        'name.lower() if ":" in name else name',
        "name",
    ),
    (
        f"{STATUS}[NVIDIA's own module serves, and this one is not installed]",
        "read/machine.py",
        'f"/sys/module/{PEERMEM}/statistics"',
        'f"/sys/module/{PEERMEM}"',
    ),
    (
        f"{STATUS}[this module under the name of NVIDIA's, as a pod loads it]",
        "read/machine.py",
        'fields if fields.get("description") == DESCRIPTION else {}',
        "fields",
    ),
    (
        f"{STATUS}[this module under the name of NVIDIA's, as a pod loads it]",
        "read/ways.py",
        " or own_module(machine) == PEERMEM\n",
        "\n",
    ),
    (
        f"{STATUS}[this module under the name of NVIDIA's, as a pod loads it]",
        "read/machine.py",
        '{own_module(machine) or MODULE}/parameters/"',
        '{MODULE}/parameters/"',
    ),
    (
        f"{STATUS}[a module under NVIDIA's name, and a package whose service would load another "
        "one]",
        "facts/module.py",
        ' and configured(machine, "ONBOOT") == "yes":',
        ":",
    ),
    (
        f"{STATUS}[a pod that loads modules needs no GPU, and an ordinary pod does "
        "(/run/mellanox/drivers/usr/src/)]",
        "read/place.py",
        "(driver_in_container(machine) or ofed_in_container(machine))",
        "driver_in_container(machine)",
    ),
    (
        f"{STATUS}[a pod that loads modules needs no GPU, and an ordinary pod does "
        "(/run/nvidia/driver/usr/bin/)]",
        "facts/place.py",
        "        return ON_THE_NODE\n",
        "        pass\n",
    ),
    (
        f"{JUDGED}[NVIDIA's own module is installed and not loaded, and nothing of this package is "
        "here]",
        "facts/peermem.py",
        "        and fits(machine)\n",
        "",
    ),
    (
        f"{JUDGED}[neither module is installed, and the module's source is here without dkms]",
        "facts/advice.py",
        'return "source" if self.source() else ""',
        'return "dkms"',
    ),
    (
        f"{JUDGED}[a module that make has installed has no service]",
        "facts/module.py",
        "return START if machine.exists(SERVICE) else LOAD",
        "return START",
    ),
    (
        f"{JUDGED}[a module that make has installed has no service]",
        "read/modules_load.py",
        "if name in names or machine",
        "if file in names or machine",
    ),
    (
        f"{JUDGED}[EFA with the proprietary driver, on kernels before and after the change, and on "
        "GPUs of two generations]",
        "facts/efa.py",
        "numbers[2] >= CHANGED[series]",
        "numbers[2] > CHANGED[series]",
    ),
    (
        f"{JUDGED}[a host that gives its GPUs away has nothing to do, and a monitor is quiet]",
        "facts/core.py",
        "not gpus(machine) or ways.given_away(machine)",
        "not gpus(machine)",
    ),
    (
        f"{JUDGED}[virtual functions are judged by what they can show]",
        "facts/devices.py",
        "not nic.software and not vf.is_one(nic.pci)",
        "not nic.software",
    ),
    (
        f"{JUDGED}[the limit on open files, which dma-bufs count toward]",
        "facts/access.py",
        "open_now * 10 > int(files) * 9",
        "open_now * 10 > int(files) * 10",
    ),
]
