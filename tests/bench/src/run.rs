// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A run: all of its measurements and what they were measured with. This is the JSON file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measurements::{self, Kind, Layout, Machine, Measurement, Mode, Module, Subject};

const METHOD: &str = "Each registration is made by a consumer of the RDMA core in a guest under QEMU whose clock \
    advances by one nanosecond for each instruction executed (-icount shift=0). Ticks are instructions. Each value is \
    the minimum of several rounds. 'module' is the time in the core's calls into the client without the driver's calls \
    made inside of them. 'published' 1: the simulated driver's calls take what is published of real ones.";

#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub method: String,
    /// Date, versions and the like.
    pub facts: BTreeMap<String, String>,
    pub sizes: Vec<u64>,
    pub measurements: Vec<Measurement>,
}

/// A kind of registration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub machine: Machine,
    pub mode: Mode,
    pub layout: Layout,
    pub size: u64,
}

impl Case {
    fn subject(self, module: Module, kind: Kind) -> Subject {
        Subject {
            machine: self.machine,
            module,
            mode: self.mode,
            kind,
            layout: Some(self.layout),
            size: Some(self.size),
            published: None,
            threads: None,
        }
    }
}

impl Run {
    /// The run of these lines, and what is wrong with those that are not measurements.
    pub fn new(facts: BTreeMap<String, String>, lines: &str) -> (Self, Vec<String>) {
        let mut measurements = Vec::new();
        let mut faults = Vec::new();
        for line in lines.lines() {
            match measurements::parse(line) {
                Ok(measurement) => measurements.push(measurement),
                Err(fault) => faults.push(fault),
            }
        }
        let mut sizes: Vec<u64> = measurements.iter().filter_map(|f| f.subject.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let method = METHOD.to_owned();
        (
            Self {
                method,
                facts,
                sizes,
                measurements,
            },
            faults,
        )
    }

    pub fn fact(&self, name: &str) -> &str {
        self.facts.get(name).map_or("unknown", String::as_str)
    }

    pub fn of(&self, subject: &Subject) -> Option<&Measurement> {
        self.measurements
            .iter()
            .find(|measurement| measurement.subject == *subject)
    }

    pub fn costs(&self, case: Case, module: Module, published: u64) -> Option<&Measurement> {
        let mut subject = case.subject(module, Kind::Costs);
        subject.published = Some(published);
        self.of(&subject)
    }

    pub fn held(&self, case: Case, module: Module) -> Option<u64> {
        self.of(&case.subject(module, Kind::Held))?
            .values
            .get("bytes")
            .copied()
    }

    pub fn freed(&self, case: Case, module: Module) -> Option<&Measurement> {
        self.of(&case.subject(module, Kind::Freed))
    }

    pub fn threads(
        &self,
        module: Module,
        mode: Mode,
        published: u64,
        threads: u64,
    ) -> Option<&Measurement> {
        self.of(&Subject {
            machine: Machine::Stock,
            module,
            mode,
            kind: Kind::Threads,
            layout: None,
            size: None,
            published: Some(published),
            threads: Some(threads),
        })
    }

    pub fn module(&self, module: Module) -> Option<&Measurement> {
        self.measurements
            .iter()
            .find(|f| f.subject.kind == Kind::Module && f.subject.module == module)
    }
}

impl Measurement {
    /// The sum of values, if all are there.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names
            .iter()
            .map(|name| self.values.get(*name).copied())
            .sum()
    }

    /// Calls of the driver's functions whose names begin with one of these.
    pub fn calls(&self, functions: &[&str]) -> u64 {
        let called = |name: &str| {
            name.strip_prefix("calls_")
                .is_some_and(|name| functions.iter().any(|function| name.starts_with(function)))
        };
        self.values
            .iter()
            .filter(|(name, _)| called(name))
            .map(|(_, calls)| calls)
            .sum()
    }
}

#[cfg(test)]
pub mod samples {
    use super::*;

    /// A run of both modules whose costs are as given, of one registration.
    pub fn run(case: Case, values: [&[(&str, u64)]; 2]) -> Run {
        run_of(case, Module::BOTH, values)
    }

    /// The same of other modules.
    pub fn run_of<const N: usize>(
        case: Case,
        modules: [Module; N],
        values: [&[(&str, u64)]; N],
    ) -> Run {
        let mut measurements = Vec::new();
        for (module, values) in modules.into_iter().zip(values) {
            for published in [0, 1] {
                let mut subject = case.subject(module, Kind::Costs);
                subject.published = Some(published);
                let values = values
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), *value));
                measurements.push(Measurement {
                    subject,
                    values: values.collect(),
                });
            }
        }
        Run {
            method: String::new(),
            facts: BTreeMap::new(),
            sizes: vec![case.size],
            measurements,
        }
    }

    pub const CASE: Case = Case {
        machine: Machine::Stock,
        mode: Mode::Revocable,
        layout: Layout::Contiguous,
        size: 1 << 20,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_wants_all_of_its_parts() {
        let run = samples::run(samples::CASE, [&[("a", 1), ("b", 2)], &[]]);
        let measurement = run.costs(samples::CASE, Module::Ours, 1).unwrap();
        assert_eq!(measurement.sum(&["a", "b"]), Some(3));
        assert_eq!(measurement.sum(&["a", "c"]), None);
    }

    #[test]
    fn calls_by_function() {
        let values: &[(&str, u64)] = &[
            ("calls_nvidia_p2p_get_pages", 2),
            ("calls_nvidia_p2p_get_pages_persistent", 1),
            ("calls_nvidia_p2p_put_pages", 4),
            ("entries", 8),
        ];
        let run = samples::run(samples::CASE, [values, &[]]);
        let measurement = run.costs(samples::CASE, Module::Ours, 0).unwrap();
        assert_eq!(measurement.calls(&["nvidia_p2p_get_pages"]), 3);
        assert_eq!(measurement.calls(&[""]), 7);
    }

    #[test]
    fn lines_that_are_no_measurements_are_faults() {
        let (run, faults) = Run::new(BTreeMap::new(), "nonsense\n");
        assert!(run.measurements.is_empty());
        assert_eq!(faults.len(), 1);
    }
}
