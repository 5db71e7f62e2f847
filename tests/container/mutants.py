# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lists mistakes in the program of the container image, each with the test that notices the mistake
(tests/try_mutants.py). Most mistakes are small: a boundary, the second of two, a condition that
holds too often."""

NODE, DECIDE, PLACES, CACHE = "node.py", "decide.py", "places.py", "cache.py"
SERVE, BUILD, OWNERS = "serve.py", "build.py", "owners.py"

MUTANTS = [
    # ---- the node ----
    ("test_decide.py::test_the_first_start", NODE, 'rf" {REGISTER}', 'rf"{REGISTER}'),
    (
        "test_decide.py::test_the_core_gets_peer_memory",
        NODE,
        "if self.exporter[0] != core:",
        "if not self.exporter[0]:",
    ),
    (
        "test_cache.py::test_a_module_without_a_build_id",
        NODE,
        '"notes/.note.gnu.build-id", "srcversion", ',
        '"notes/.note.gnu.build-id", ',
    ),
    (
        "test_decide.py::test_not_registered",
        NODE,
        'for core in ("ib_core", "ib_uverbs")',
        'for core in ("ib_core",)',
    ),
    (
        "test_decide.py::test_not_registered",
        NODE,
        "return holds and (not self",
        "return holds or (not self",
    ),
    ("test_decide.py::test_an_early_operator", NODE, "self.exists(VALIDATIONS) and ", ""),
    # ---- the next step ----
    (
        "test_decide.py::test_a_container_ends",
        DECIDE,
        'elif name == "nv_peer_mem" and node.ofed_leaves():',
        "elif node.ofed_leaves():",
    ),
    (
        "test_decide.py::test_the_drivers_container_unloads",
        DECIDE,
        "    if node.lacks_uvm():\n        return NO_UVM\n",
        "",
    ),
    ("test_decide.py::test_no_cuda", DECIDE, "    elif node.lacks_uvm():\n", "    elif False:\n"),
    (
        "test_decide.py::test_the_first_start",
        DECIDE,
        "or len(node.core()) < 2",
        "or len(node.core()) < 1",
    ),
    (
        "test_decide.py::test_another_version",
        DECIDE,
        "    if own.references:\n",
        "    if own.references > 1:\n",
    ),
    # ---- where files are ----
    (
        "test_places.py::test_headers",
        PLACES,
        "for root in (node.path(DRIVER), node.path(HOST)):",
        "for root in (node.path(HOST), node.path(DRIVER)):",
    ),
    (
        "test_places.py::test_the_loaded_driver",
        PLACES,
        '            if is_loaded(node, file, "nvidia"):\n',
        "            if True:\n",
    ),
    (
        "test_places.py::test_a_driver_without_a_checksum",
        PLACES,
        'for checked in ("srcversion", "version"):',
        'for checked in ("srcversion",):',
    ),
    # ---- the cache ----
    (
        "test_cache.py::test_every_part_of_the_key",
        CACHE,
        "**{module.name: module.identity for module in neighbours}",
        "**{module.name: module.version for module in neighbours}",
    ),
    (
        "test_cache.py::test_a_damaged_entry",
        CACHE,
        "if checksum != sum_of(place / file):",
        "if False:",
    ),
    (
        "test_cache.py::test_only_the_last_entries_stay",
        CACHE,
        "entries[MOST:]",
        "entries[MOST + 1 :]",
    ),
    ("test_cache.py::test_others_can_write", CACHE, "stat.S_IWGRP | stat.S_IWOTH", "stat.S_IWOTH"),
    ("test_cache.py::test_a_driver", CACHE, "complete = all(", "complete = not any("),
    # ---- attempts ----
    (
        "test_serve.py::test_the_build_fails",
        SERVE,
        "FIRST << (self.failures - 1)",
        "FIRST << self.failures",
    ),
    (
        "test_serve.py::test_the_build_fails",
        SERVE,
        "self.failures + 1 if key == self.failed else 1",
        "self.failures + 1",
    ),
    (
        "test_serve.py::test_a_part_is_missing",
        SERVE,
        'longest = FIRST if state == "waiting" else LATEST',
        "longest = LATEST",
    ),
    (
        "test_serve.py::test_the_end",
        SERVE,
        "if not own or own.name != self.settings.name:",
        "if not own:",
    ),
    # ---- the build and the owners ----
    (
        "test_settings.py::test_the_reason_of_a_failed_build",
        BUILD,
        "ours or errors[:1] or",
        "errors[:1] or ours or",
    ),
    ("test_owners.py::test_a_pod", OWNERS, '.replace("_", "-")', ""),
    ("test_owners.py::test_several", OWNERS, 'if one.state != "orphaned"', ""),
]
