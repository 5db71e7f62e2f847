// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads data/programs.table, and writes it as constants in the types of src/facts/consumers.rs.
use std::fmt::Write;

use crate::blocks::{Block, Field, File, word_of};
use crate::check::Mistakes;

const EFA: &str = "EFA has no reliable connections";
/// A program looks for a file, or for words in one of these lists.
const LISTS: &[&str] = &[" in /proc/modules", " in /proc/kallsyms"];

pub fn of_file(file: &File, mistakes: &mut Mistakes) -> String {
    let mut out = "pub static PROGRAMS: &[Program] = &[\n".to_owned();
    for (number, block) in file.blocks.iter().enumerate() {
        if file.blocks.iter().take(number).any(|other| other.head == block.head) {
            mistakes.add(&block.place, "this program stands twice");
        }
        let _ = writeln!(out, "{},", program(block, mistakes));
    }
    out + "];\n"
}

fn program(block: &Block, mistakes: &mut Mistakes) -> String {
    let (mut tries, mut fields, mut has_source) = (Vec::new(), String::new(), false);
    let (mut efa, mut has_efa_row, mut is_common) = (EFA, false, false);
    for field in &block.fields {
        let (word, rest) = word_of(&field.text);
        match (word, rest) {
            ("dma-buf" | "pointer", "") => tries.push(attempt(word, field, mistakes)),
            ("without" | "skip" | "instead" | "option" | "advice", _) => {
                let _ = write!(fields, "{word}: {rest:?}, ");
            }
            ("only", _) => {
                let _ = write!(fields, "only: &{:?}, ", words(rest));
                efa = "";
            }
            ("also-efa", "") => efa = "",
            ("no-efa", _) => efa = rest,
            ("efa-row", _) => (efa, has_efa_row) = (rest, true),
            ("common", "") => is_common = true,
            ("source", _) => has_source = !rest.is_empty(),
            ("ran", _) => {}
            _ => mistakes.add(&field.place, format!("a program has no field {}", field.text)),
        }
    }
    if tries.is_empty() || !has_source {
        mistakes.add(&block.place, "a program has a way, and a source");
    }
    format!(
        "Program {{ name: {:?}, tries: &[{}], no_efa: {efa:?}, has_efa_row: {has_efa_row}, common: {is_common}, {fields}..NO_PROGRAM }}",
        block.head,
        tries.join(", ")
    )
}

fn attempt(way: &str, field: &Field, mistakes: &mut Mistakes) -> String {
    let (mut sees, mut fields) = (Vec::new(), String::new());
    for (place, line) in &field.inner {
        let (word, rest) = word_of(line);
        match (word, rest) {
            ("sees", _) if rest.starts_with('/') || LISTS.iter().any(|list| rest.ends_with(list)) => sees.push(rest),
            ("setting", _) => {
                let _ = write!(fields, "setting: {rest:?}, ");
            }
            ("names" | "drivers" | "not-with" | "not-on", _) => {
                let _ = write!(fields, "{}: &{:?}, ", word.replace('-', "_"), words(rest));
            }
            ("gpu-alone", "") => fields.push_str("gpu_alone: true, "),
            ("refused", "next") => fields.push_str("goes_on: true, "),
            _ => mistakes.add(place, format!("a way has no condition {line}")),
        }
    }
    format!("Try {{ dma_buf: {}, looks_for: &{sees:?}, {fields}..NO_TRY }}", way == "dma-buf")
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}
