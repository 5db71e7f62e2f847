// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! docs/performance/results.md, written whole: what a run has measured, in tables and plots.

use std::fmt::Write;

use crate::bounds::{self, Verdict};
use crate::plots;
use crate::run::Run;
use crate::tables;

const HEAD: &str = "<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->
<!-- Written by tests/run bench --docs: do not edit. -->
# What registrations cost, as measured

How this is measured, and what it does not show: [performance.md](../performance.md).
";

/// The document; its plots are beside it.
pub fn results(run: &Run) -> String {
    let mut text = format!("{HEAD}\n{}\n", machine(run));
    for chapter in bounds::chapters(run) {
        let table = tables::bounds(&chapter);
        let _ = write!(text, "\n## {}\n\n{}\n", table.title, table.for_markdown());
        for remark in remarks(&chapter.verdicts) {
            let _ = write!(text, "\n* {remark}");
        }
        text.push('\n');
    }
    text += "\n## Plots\n";
    for (file, alt) in plots::FILES {
        let _ = write!(text, "\n![{alt}]({file})\n");
    }
    text += "\n## All metrics\n";
    for table in tables::all(run) {
        let _ = write!(text, "\n### {}\n\n{}\n", table.title, table.for_markdown());
    }
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

/// What there is to say of the bounds that are missed: once where it is the same for both modes.
pub fn remarks(verdicts: &[[Verdict; 2]]) -> Vec<String> {
    let mut remarks = Vec::new();
    for both in verdicts {
        let missed: Vec<(&Verdict, String)> = both
            .iter()
            .filter(|verdict| verdict.met == Some(false))
            .map(|verdict| (verdict, reason(verdict)))
            .collect();
        match missed.as_slice() {
            [(one, reason), (_, other)] if reason == other => {
                remarks.push(remark(one, "both modes", reason));
            }
            each => remarks.extend(each.iter().map(|(verdict, reason)| {
                remark(
                    verdict,
                    &format!("{} mode", verdict.whose.mode.name()),
                    reason,
                )
            })),
        }
    }
    remarks
}

fn remark(verdict: &Verdict, modes: &str, reason: &str) -> String {
    format!("Missed in {modes}: {}. {reason}", verdict.bound.text())
}

fn reason(verdict: &Verdict) -> String {
    match verdict.reason() {
        None => String::new(),
        Some(Ok(known)) => known.to_owned(),
        Some(Err(unknown)) => format!("ERROR: {unknown}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::samples::{self, CASE};

    #[test]
    fn a_missed_bound_is_remarked_with_its_reason() {
        let costs = |value| [("register_total", value), ("deregister_total", 0)];
        let run = samples::run(CASE, [&costs(9), &costs(10)]);
        let remarks = remarks(&bounds::chapters(&run)[0].verdicts);
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(
            remarks[0].starts_with("Missed in revocable mode: the same, 1 MiB. ERROR: no reason")
        );
    }

    #[test]
    fn the_document_is_whole() {
        let run = samples::run(CASE, [&[("entries", 1)], &[("entries", 16)]]);
        let text = results(&run);
        assert!(text.starts_with("<!-- SPDX"));
        for heading in [
            "## Bounds, without IOMMU",
            "## Bounds, grounds against each other",
            "## Plots",
            "## All metrics",
        ] {
            assert!(text.contains(&format!("\n{heading}\n")), "{heading}");
        }
    }
}
