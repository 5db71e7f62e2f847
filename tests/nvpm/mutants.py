# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lists mistakes in nvpm. Each has the words of cargo test that name a test, the file below
nvpm/src, the words that are replaced, and the wrong words. Before a title stands its table."""

TABLES, UNIT = "--test tables --", "--bin nvpm-bin"

MUTANTS = [
    # ---- read ----
    (
        f"{UNIT} kernel_symbols::tests::the_first_line_of_a_function_counts",
        "read/kernel_symbols.rs",
        "map_or(0, |end| end + 1)",
        "map_or(0, |end| end + 2)",
    ),
    (
        f"{UNIT} names::tests::names_with_consecutive_numbers_are_folded",
        "read/names.rs",
        "[first, _, .., last]",
        "[first, .., last]",
    ),
    (
        f"{UNIT} regions::tests::sizes_have_their_units",
        "read/regions.rs",
        "if number % unit == 0",
        "if number % 1024 == 0",
    ),
    # ---- facts ----
    (
        f"{UNIT} access_control::tests::capabilities_are_found_in_their_list",
        "facts/access_control.rs",
        "(header >> 22)",
        "(header >> 20)",
    ),
    (
        f"{TABLES} machines links slower than both ends can",
        "facts/links.rs",
        "number(&pci.width) < full",
        "number(&pci.width) <= full",
    ),
    (
        f"{TABLES} machines eight GPUs and twelve RDMA devices",
        "facts/distances.rs",
        "if farther > 2",
        "if farther > 3",
    ),
    (
        f"{TABLES} machines not root: unreadable facts are named once",
        "facts/access_control.rs",
        "config.len() <= READ_BY_ALL",
        "config.len() < READ_BY_ALL",
    ),
    # ---- show ----
    (
        f"{UNIT} plugin::tests::texts_that_do_not_fit_are_counted",
        "show/plugin.rs",
        "> room && !said.is_empty()",
        ">= room && !said.is_empty()",
    ),
    (
        f"{UNIT} plugin::tests::a_star_stands_for_the_rest",
        "show/plugin.rs",
        "id.starts_with(begin)",
        "id.ends_with(begin)",
    ),
    (
        f"{UNIT} registrations::tests::ages_have_the_unit_that_people_use",
        "show/registrations.rs",
        "..120 =>",
        "..121 =>",
    ),
    (
        f"{UNIT} utc::tests::days_have_dates",
        "show/utc.rs",
        "if month < 10",
        "if month <= 10",
    ),
    (
        f"{TABLES} commands check: the same fact about several devices",
        "show/plugin.rs",
        "0 | 1 => String::new()",
        "0..=2 => String::new()",
    ),
    # ---- commands ----
    (
        f"{UNIT} commands::tests::a_mistyped_command_is_guessed",
        "commands/mod.rs",
        "likeness > ALIKE",
        "likeness < ALIKE",
    ),
    (
        f"{TABLES} commands output that cannot be written is an error",
        "commands/check.rs",
        "pub const LOST: u8 = Code::Unknown as u8;",
        "pub const LOST: u8 = Code::Ok as u8;",
    ),
]
