// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The measured part of docs/performance.md: what stands between two markers.

use std::fmt::Write;

use crate::bounds::{self, Verdict};
use crate::figures::Machine;
use crate::plots;
use crate::run::Run;
use crate::tables;

const BEGIN: &str = "<!-- measured: begin (written by tests/run bench --docs) -->\n";
const END: &str = "<!-- measured: end -->\n";

/// The document with another measured part.
pub fn replace(document: &str, measured: &str) -> Result<String, String> {
    let lacks = |marker: &str| format!("the document lacks the line {}", marker.trim_end());
    let (before, rest) = document.split_once(BEGIN).ok_or_else(|| lacks(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| lacks(END))?;
    Ok(format!("{before}{BEGIN}{measured}{END}{after}"))
}

pub fn measured(run: &Run, plots_in: &str) -> String {
    let mut text = format!("\n{}\n", machine(run));
    for machine in Machine::BOTH {
        let verdicts = bounds::judge(run, machine);
        let table = tables::bounds(machine, &verdicts);
        let _ = write!(text, "\n## {}\n\n{}\n", table.title, table.for_markdown());
        for remark in remarks(&verdicts) {
            let _ = write!(text, "\n* {remark}");
        }
        text.push('\n');
    }
    text += "\n## Plots\n";
    for (file, alt) in plots::FILES {
        let _ = write!(text, "\n![{alt}]({plots_in}/{file})\n");
    }
    text += "\n## All figures\n";
    for table in tables::all(run) {
        let _ = write!(text, "\n### {}\n\n{}\n", table.title, table.for_markdown());
    }
    text.push('\n');
    text
}

/// With what and when.
pub fn machine(run: &Run) -> String {
    format!(
        "Measured on {} with nv_peer_mem {} and nvidia-peermem {}, on kernel {} under QEMU {}.",
        run.fact("date"),
        run.fact("nv_peer_mem"),
        run.fact("nvidia-peermem"),
        run.fact("kernel"),
        run.fact("qemu"),
    )
}

/// What there is to say of the bounds that are missed.
pub fn remarks(verdicts: &[[Verdict; 2]]) -> Vec<String> {
    let mut remarks = Vec::new();
    for both in verdicts {
        let missed = || both.iter().filter(|verdict| verdict.met == Some(false));
        let mut reasons: Vec<&str> = missed().map(Verdict::reason).collect();
        reasons.dedup();
        if reasons.is_empty() {
            continue;
        }
        remarks.push(format!(
            "Missed: {}: {}",
            both[0].bound.text(),
            reasons.join(" ")
        ));
        for verdict in missed().filter(|verdict| !verdict.over.is_empty()) {
            remarks.push(format!(
                "Over, {}: {}.",
                verdict.whose.mode.name(),
                verdict.over.join("; ")
            ));
        }
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let document = format!("above\n{BEGIN}old\n{END}below\n");
        let new = replace(&document, "new\n").unwrap();
        assert_eq!(new, format!("above\n{BEGIN}new\n{END}below\n"));
        assert_eq!(replace(&new, "old\n").unwrap(), document);
    }

    #[test]
    fn a_document_without_markers_is_left_alone() {
        assert!(replace("text\n", "new")
            .unwrap_err()
            .contains("measured: begin"));
    }
}
