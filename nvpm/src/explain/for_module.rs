// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Advice about a module that cannot be loaded, for the service's script.
use crate::explain::judge::{Found, judged};
use crate::explain::scan::Scan;
use crate::explain::wording::{plain, sentence};
use crate::facts::advice::Advice;
use crate::facts::pod::TRIES_AGAIN;
use crate::read::machine::{MODULE, Machine, PEERMEM};
use crate::read::place::loads_modules;

/// Returns the cause and what to do. TEXT is the text that modprobe and the kernel have printed about the module. A
/// possible cause counts, because the module could not be loaded. Returns an empty text if the text shows no cause.
pub fn advice(machine: &Machine, module: &str, text: &str) -> String {
    let mut scan = Scan::new();
    // A text in memory can always be read.
    let _ = scan.read("", text.as_bytes());
    judged(&scan).causes.first().map(|cause| of_cause(machine, module, text, cause)).unwrap_or_default()
}

fn of_cause(machine: &Machine, module: &str, text: &str, cause: &Found) -> String {
    let note = cause.best().map_or("", |best| best.variant.row().note);
    let phrases = [sentence(cause.says()), sentence(note)].map(|text| plain(&text));
    let why = phrases.iter().filter(|phrase| !phrase.is_empty());
    let why: Vec<String> = why.map(|phrase| format!("{}.", phrase.trim_end_matches('.'))).collect();
    let of_service = [MODULE, PEERMEM].contains(&module) && loads_modules(machine);
    let here = Advice { text, ..Advice::about(machine, module) }.filled(cause.here());
    let todo = match (of_service, here.is_empty()) {
        (true, _) => TRIES_AGAIN.to_owned(),
        (false, false) => here,
        (false, true) => plain(cause.todo()),
    };
    format!("{} {todo}", why.join(" "))
}
