# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lists mistakes in the program of the container image, each with the test that notices the mistake
(tests/try_mutants.py). Most mistakes are small: a boundary, the second of two, a condition that
holds too often."""

NODE, DECIDE, PLACES, CACHE = "node.rs", "decide.rs", "places.rs", "cache.rs"
SERVE, BUILD, OWNERS, PORT = "serve.rs", "build.rs", "owners.rs", "port.rs"
METRICS, SETTINGS = "metrics.rs", "settings.rs"

MUTANTS = [
    # ---- the node ----
    (
        "decide::tests::the_first_start",
        NODE,
        ".filter(|name| *name == REGISTER)",
        ".filter(|name| name.ends_with(REGISTER))",
    ),
    ("decide::tests::the_core_gets_peer_memory", NODE, "known.0 != core", "known.0.is_empty()"),
    (
        "cache::tests::a_module_without_a_build_id",
        NODE,
        '"notes/.note.gnu.build-id", "srcversion", ',
        '"notes/.note.gnu.build-id", ',
    ),
    (
        "decide::tests::not_registered",
        NODE,
        "CORE.iter().any(|core|",
        "CORE[..1].iter().any(|core|",
    ),
    ("decide::tests::not_registered", NODE, "holds && (!self", "holds || (!self"),
    ("decide::tests::an_early_operator", NODE, "self.exists(VALIDATIONS) && ", ""),
    # ---- the next step ----
    (
        "decide::tests::a_container_ends",
        DECIDE,
        'name == "nv_peer_mem" && node.ofed_leaves()',
        "node.ofed_leaves()",
    ),
    (
        "decide::tests::the_drivers_container_unloads",
        DECIDE,
        "    if node.lacks_uvm() {\n        return Some(NO_UVM);\n    }\n",
        "",
    ),
    (
        "decide::tests::no_cuda",
        DECIDE,
        "} else if node.lacks_uvm() {",
        "} else if node.lacks_uvm() && own.references > 9 {",
    ),
    (
        "decide::tests::the_first_start",
        NODE,
        "found.len() == CORE.len() &&",
        "!found.is_empty() &&",
    ),
    ("decide::tests::another_version", DECIDE, "own.references > 0", "own.references > 1"),
    # ---- where files are ----
    ("places::tests::the_headers", PLACES, "= [DRIVER, HOST].map", "= [HOST, DRIVER].map"),
    (
        "places::tests::the_loaded_driver",
        PLACES,
        'if is_loaded(node, &file, "nvidia", true, field) {',
        "if driver.live {",
    ),
    (
        "places::tests::a_driver_without_a_checksum",
        PLACES,
        'in ["srcversion", "version"]',
        'in ["srcversion"]',
    ),
    # ---- the cache ----
    (
        "cache::tests::every_part_of_the_key",
        CACHE,
        "(module.name, module.identity)",
        "(module.name, module.version)",
    ),
    (
        "cache::tests::a_damaged_entry",
        CACHE,
        "if expected != sum_of(&place.join(&file))? {",
        "if expected.is_empty() {",
    ),
    ("cache::tests::only_the_last_entries_stay", CACHE, "skip(MOST)", "skip(MOST + 1)"),
    ("cache::tests::others_can_write", CACHE, "0o022", "0o002"),
    ("cache::tests::a_driver", CACHE, ".into_iter().all(|name|", ".into_iter().any(|name|"),
    # ---- attempts ----
    ("serve::tests::the_build_fails", SERVE, "1 << count.min(16)", "2 << count.min(16)"),
    (
        "serve::tests::the_build_fails",
        SERVE,
        ".filter(|last| last.key == key).map_or",
        ".map_or",
    ),
    (
        "serve::tests::a_part_is_missing",
        SERVE,
        "if state == State::Waiting { FIRST }",
        "if state == State::Blocked { FIRST }",
    ),
    ("serve::tests::the_end", SERVE, ".filter(|own| own.name == self.settings.name) else", " else"),
    ("serve::tests::the_owners_are_told_once_a_minute", SERVE, "now < *asked + OWNERS", "false"),
    # ---- the build, the settings and the owners ----
    (
        "build::tests::the_reason_of_a_failed_build",
        BUILD,
        "log.lines().rev().find_map(",
        "log.lines().find_map(",
    ),
    ("build::tests::a_build", BUILD, 'arg("-RLp")', 'arg("-Lp")'),
    ("settings::tests::wrong_settings", SETTINGS, ".filter(|_| is_number)", ""),
    ("owners::tests::a_pod", OWNERS, ".replace('_', \"-\")", ".to_owned()"),
    ("owners::tests::several", OWNERS, 'text("state") == "orphaned"', "process == 0"),
    # ---- the metrics ----
    ("metrics::tests::of_the_pod", METRICS, ".replace('\\n', \"\\\\n\")", ""),
    (
        "port::tests::a_silent_client",
        PORT,
        "self.client.set_read_timeout(self.left()?)?;",
        "self.left()?;",
    ),
]
