// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the status as metrics for Prometheus.
use crate::facts::all::{State, Status};
use crate::facts::core_advice;
use crate::facts::fact::{Fact, Verdict};
use crate::read::machine::{Machine, loaded_version, own_module};
use crate::read::ways;
use crate::show::figures::{
    self, ATTENTION, FAILURES, FIGURES, Figure, GPU_MEMORY, HOST_MEMORY, INFO, JUDGED, LOADED, POSSIBLE, figures,
};
use crate::show::json_line::quoted;
use crate::show::release::release;
use crate::text::clean;
use crate::used::sums::sums;

/// Adds the meaning, the type and all samples of one metric, each as a line. A sample has labels, as `NAME="TEXT"`, and
/// a value.
fn metric(out: &mut Vec<String>, figure: &Figure, samples: &[(String, String)]) {
    let name = format!("nvpm_{}", figure.metric);
    out.push(format!("# HELP {name} {}", figure.meaning));
    out.push(format!("# TYPE {name} {}", figure.kind));
    for (labels, value) in samples {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        out.push(format!("{name}{labels} {value}"));
    }
}

fn label(name: &str, text: &str) -> String {
    format!("{name}={}", quoted(&clean(text)))
}

fn flag(is_so: bool) -> [(String, String); 1] {
    [(String::new(), u8::from(is_so).to_string())]
}

pub fn lines(machine: &Machine, status: &Status) -> Vec<String> {
    let mut out = Vec::new();
    let name = own_module(machine);
    let module = if name.is_empty() { String::new() } else { loaded_version(machine, name) };
    let labels = [
        ("kernel", machine.kernel.as_str()),
        ("module", &module),
        ("driver", &machine.text("/sys/module/nvidia/version")),
        ("ofed", &core_advice::ofed(machine)),
        ("nvpm", &release()),
    ];
    let labels = labels.map(|(name, text)| label(name, text)).join(",");
    metric(&mut out, &INFO, &[(labels, "1".to_owned())]);
    if status.state != State::Unknown {
        metric(&mut out, &LOADED, &flag(status.state == State::Running));
        metric(&mut out, &POSSIBLE, &flag(ways::in_the_way(machine).is_empty()));
    }
    let count = |verdict: Verdict| status.facts.iter().filter(|fact| fact.verdict == verdict).count().to_string();
    let counted = |verdict: Verdict| (label("verdict", verdict.word()), count(verdict));
    metric(&mut out, &ATTENTION, &[counted(Verdict::Warn), counted(Verdict::Bad)]);
    let judged: Vec<_> = status.facts.iter().filter_map(judged).collect();
    metric(&mut out, &JUDGED, &judged);
    let found: Vec<&Fact> = figures(&status.facts).collect();
    for (id, figure) in &FIGURES {
        if let Some(fact) = found.iter().find(|fact| fact.id == *id) {
            metric(&mut out, figure, &[(String::new(), fact.value.clone())]);
        }
    }
    let sums = sums(machine);
    let of_gpu = |((way, device), bytes): (&(String, String), &u64)| {
        (format!("{},{}", label("way", way), label("device", device)), bytes.to_string())
    };
    let of_host = |(device, bytes): (&String, &u64)| (label("device", device), bytes.to_string());
    let gpu: Vec<_> = sums.gpu.iter().map(of_gpu).collect();
    let host: Vec<_> = sums.host.iter().map(of_host).collect();
    for (figure, samples) in [(&GPU_MEMORY, gpu), (&HOST_MEMORY, host)] {
        if !samples.is_empty() {
            metric(&mut out, figure, &samples);
        }
    }
    let failed = |fact: &&Fact| Some((label("cause", figures::cause(fact)?), fact.value.clone()));
    let failed: Vec<_> = found.iter().filter_map(failed).collect();
    if !failed.is_empty() {
        metric(&mut out, &FAILURES, &failed);
    }
    out
}

fn judged(fact: &Fact) -> Option<(String, String)> {
    let level = match fact.verdict {
        Verdict::Good => "0",
        Verdict::Warn => "1",
        Verdict::Bad => "2",
        Verdict::None | Verdict::Unread => return None,
    };
    Some((label("id", &fact.id), level.to_owned()))
}
