// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What was promised, and whether it was met. Each bound is judged for both modes, with
//! and without an IOMMU, by the worst of the registrations that it speaks of.
//! The module on a ground without the kernel crate is judged against itself on the
//! kernel's, of contiguous and of fragmented memory.

use crate::measurements::{Layout, Machine, Mode, Module};
use crate::metrics::{self, Metric};
use crate::numbers;
use crate::reasons;
use crate::run::{Case, Run};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// What one scatterlist entry is to hold: as much as RDMA devices take in one piece.
const ENTRY: u64 = 2 * GIB;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    PinCalls,
    Total64K,
    Total1M,
    Total16M,
    Total256M,
    Fragmented,
    Module,
    Entries,
    FragmentedEntries,
    HeldSmall,
    HeldLarge,
    Freed,
    Loading,
    Throughput,
    FreeTotal,
    FreeModule,
    ReadyTotal,
    ReadyModule,
}

/// Bounds that are judged together.
pub struct Chapter {
    pub title: String,
    /// What their ratios are of.
    pub compared: &'static str,
    pub verdicts: Vec<[Verdict; 2]>,
}

/// Whose registrations are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whose {
    pub machine: Machine,
    pub mode: Mode,
}

/// How a bound stands.
#[derive(Debug)]
pub struct Verdict {
    pub bound: Bound,
    pub whose: Whose,
    /// Nothing if it was not measured, or is no bound of this mode.
    pub met: Option<bool>,
    /// The value, and of which registration it is.
    pub measured: String,
    pub worst_at: String,
}

/// The registrations that a bound is for.
struct Scope {
    metrics: &'static [Metric],
    layouts: &'static [Layout],
    sizes: (u64, u64),
}

const CONTIGUOUS: &[Layout] = &[Layout::Contiguous];
const FRAGMENTED: &[Layout] = &[Layout::Holes64k];
const ANY_SIZE: (u64, u64) = (0, u64::MAX);
const LARGE: (u64, u64) = (256 * MIB, u64::MAX);

impl Bound {
    const GROUNDS: [Self; 4] = [
        Self::FreeTotal,
        Self::FreeModule,
        Self::ReadyTotal,
        Self::ReadyModule,
    ];

    const BESIDE_THEIRS: [Self; 14] = [
        Self::PinCalls,
        Self::Total64K,
        Self::Total1M,
        Self::Total16M,
        Self::Total256M,
        Self::Fragmented,
        Self::Module,
        Self::Entries,
        Self::FragmentedEntries,
        Self::HeldSmall,
        Self::HeldLarge,
        Self::Freed,
        Self::Loading,
        Self::Throughput,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Self::PinCalls => "driver pin calls per registration",
            Self::Total64K => {
                "total register+deregister, published driver costs, contiguous, 64 KiB"
            }
            Self::Total1M => "the same, 1 MiB",
            Self::Total16M => "the same, 16 MiB",
            Self::Total256M => "the same, 256 MiB and more",
            Self::Fragmented => "the same, 64 KiB chunks, 256 MiB and more",
            Self::Module => "module-only instructions, 64 KiB and 1 MiB, contiguous",
            Self::Entries => "scatterlist entries, contiguous",
            Self::FragmentedEntries => "scatterlist entries, 64 KiB chunks",
            Self::HeldSmall => "kernel memory held, 64 KiB",
            Self::HeldLarge => "kernel memory held, 4 GiB contiguous",
            Self::Freed => "cudaFree of registered memory until it returns",
            Self::Loading => "loading, instructions",
            Self::Throughput => "throughput, 4 threads against 1 (module-only part)",
            Self::FreeTotal => "free: total register+deregister",
            Self::FreeModule => "free: module alone, register+deregister or in the callback",
            Self::ReadyTotal => "ready: total register+deregister",
            Self::ReadyModule => "ready: module alone, register+deregister or in the callback",
        }
    }

    /// What a ratio may be at most; nothing where there is no bound.
    fn most(self, Whose { machine, mode }: Whose) -> Option<f64> {
        let of = |without_iommu, with_iommu| match machine {
            Machine::Stock => Some(without_iommu),
            Machine::Iommu => Some(with_iommu),
        };
        match self {
            Self::Total64K => of(0.55, 0.56),
            Self::Total1M => of(0.55, 0.50),
            Self::Total16M => of(0.45, 0.18),
            Self::Total256M => of(0.40, 0.15),
            Self::Fragmented => of(0.60, 0.45),
            Self::Module if mode == Mode::Persistent => of(1.2, 3.0),
            Self::HeldSmall => of(2.0, 3.0),
            Self::HeldLarge => of(0.01, 0.01),
            // In the other mode the driver calls nobody.
            Self::Freed if mode == Mode::Revocable => of(1.1, 0.5),
            Self::Loading if mode == Mode::Persistent && machine == Machine::Stock => Some(2.0),
            Self::FreeTotal | Self::ReadyTotal => Some(1.03),
            Self::FreeModule | Self::ReadyModule => Some(1.10),
            _ => None,
        }
    }

    /// The same in words.
    pub fn limit(self, machine: Machine) -> String {
        match self {
            Self::PinCalls => "1 against 2".to_owned(),
            Self::Entries | Self::FragmentedEntries => "1 per 2 GiB".to_owned(),
            Self::Throughput => "no worse than the original's scaling".to_owned(),
            _ => {
                let most = Mode::BOTH
                    .iter()
                    .find_map(|&mode| self.most(Whose { machine, mode }));
                most.map_or(String::new(), |most| format!("{most:.2}"))
            }
        }
    }

    /// On which machines it is judged.
    fn is_for(self, machine: Machine) -> bool {
        match self {
            Self::FragmentedEntries => machine == Machine::Iommu,
            Self::Loading | Self::Throughput => machine == Machine::Stock,
            _ => true,
        }
    }

    fn scope(self) -> Scope {
        let scope = |metrics, layouts, sizes| Scope {
            metrics,
            layouts,
            sizes,
        };
        const TOTAL: &[Metric] = &[metrics::PUBLISHED];
        const HELD: &[Metric] = &[metrics::HELD];
        match self {
            Self::Total64K => scope(TOTAL, CONTIGUOUS, (64 * KIB, 64 * KIB)),
            Self::Total1M => scope(TOTAL, CONTIGUOUS, (MIB, MIB)),
            Self::Total16M => scope(TOTAL, CONTIGUOUS, (16 * MIB, 16 * MIB)),
            Self::Total256M => scope(TOTAL, CONTIGUOUS, LARGE),
            Self::Fragmented => scope(TOTAL, FRAGMENTED, LARGE),
            Self::Module => scope(&[metrics::MODULE], CONTIGUOUS, (64 * KIB, MIB)),
            Self::HeldSmall => scope(HELD, &Layout::ALL, (64 * KIB, 64 * KIB)),
            Self::HeldLarge => scope(HELD, CONTIGUOUS, (4 * GIB, 4 * GIB)),
            Self::Freed => scope(&[metrics::FREED], &Layout::ALL, ANY_SIZE),
            Self::FreeTotal | Self::ReadyTotal => scope(&[metrics::TOTAL], &Layout::ENDS, ANY_SIZE),
            Self::FreeModule | Self::ReadyModule => scope(
                &[metrics::MODULE, metrics::REVOKE_MODULE],
                &Layout::ENDS,
                ANY_SIZE,
            ),
            Self::PinCalls => scope(&[metrics::PINS], &Layout::ALL, ANY_SIZE),
            Self::Entries => scope(&[metrics::ENTRIES], CONTIGUOUS, ANY_SIZE),
            Self::FragmentedEntries => scope(&[metrics::ENTRIES], FRAGMENTED, LARGE),
            Self::Loading | Self::Throughput => scope(&[], &[], ANY_SIZE),
        }
    }

    fn judge(self, run: &Run, whose: Whose) -> Verdict {
        let verdict = match self {
            Self::PinCalls => pin_calls(run, whose),
            Self::Entries | Self::FragmentedEntries => entries(self, run, whose),
            Self::Loading => loading(run, whose),
            Self::Throughput => scaling(run, whose),
            Self::FreeTotal | Self::FreeModule => {
                self.ratio(run, whose, [Module::OnFree, Module::OnKernel])
            }
            Self::ReadyTotal | Self::ReadyModule => {
                self.ratio(run, whose, [Module::OnReady, Module::OnKernel])
            }
            _ => self.ratio(run, whose, Module::BOTH),
        };
        verdict.unwrap_or_else(|| Verdict {
            bound: self,
            whose,
            met: None,
            measured: String::new(),
            worst_at: String::new(),
        })
    }

    /// By the worst of its metrics, in the worst of its cases.
    fn ratio(self, run: &Run, whose: Whose, modules: [Module; 2]) -> Option<Verdict> {
        let most = self.most(whose)?;
        let scope = self.scope();
        let cases = cases(run, whose, &scope);
        let (metric, (ratio, case)) = scope
            .metrics
            .iter()
            .filter_map(|metric| Some((metric.label, worst(run, metric, &cases, modules)?)))
            .max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
        Some(Verdict {
            bound: self,
            whose,
            met: Some(ratio <= most),
            measured: match modules {
                [_, Module::OnKernel] => format!("{ratio:.3}"),
                _ => exact_ratio(ratio, most),
            },
            worst_at: match scope.metrics {
                [_] => place(case),
                _ => format!("{metric}, {}", place(case)),
            },
        })
    }
}

impl Verdict {
    /// "met: 0.47 (64 KiB, contiguous)"
    pub fn text(&self) -> String {
        match self.met {
            None if self.bound.scope().metrics.is_empty()
                || self.bound.most(self.whose).is_some() =>
            {
                "not measured".to_owned()
            }
            None => "no bound".to_owned(),
            Some(met) => format!(
                "{}: {} ({})",
                if met { "met" } else { "MISSED" },
                self.measured,
                self.worst_at
            ),
        }
    }

    /// Why it was missed. An error is what no reason is known for.
    pub fn reason(&self) -> Option<Result<&'static str, String>> {
        if self.met != Some(false) {
            return None;
        }
        Some(reasons::of(self.bound, self.whose).ok_or_else(|| {
            format!(
                "no reason is known for {}, {}, {} mode",
                self.bound.text(),
                self.whose.machine.name(),
                self.whose.mode.name()
            )
        }))
    }
}

/// Every bound: those beside nvidia-peermem for each machine, then those of the grounds.
pub fn chapters(run: &Run) -> Vec<Chapter> {
    let beside_theirs = |machine: Machine| {
        let mut bounds = Bound::BESIDE_THEIRS.to_vec();
        bounds.retain(|bound| bound.is_for(machine));
        Chapter {
            title: format!("Bounds, {}", machine.name()),
            compared: "metric, ours / nvidia-peermem",
            verdicts: judge(run, machine, &bounds),
        }
    };
    let mut chapters = Vec::from(Machine::BOTH.map(beside_theirs));
    chapters.push(Chapter {
        title: "Bounds, grounds against each other".to_owned(),
        compared: "metric, against the ground kernel",
        verdicts: judge(run, Machine::Stock, &Bound::GROUNDS),
    });
    chapters
}

/// These bounds for both modes.
fn judge(run: &Run, machine: Machine, bounds: &[Bound]) -> Vec<[Verdict; 2]> {
    bounds
        .iter()
        .map(|bound| Mode::BOTH.map(|mode| bound.judge(run, Whose { machine, mode })))
        .collect()
}

/// All measured registrations of that scope.
fn cases(run: &Run, Whose { machine, mode }: Whose, scope: &Scope) -> Vec<Case> {
    let (from, to) = scope.sizes;
    let mut cases = Vec::new();
    for &layout in scope.layouts {
        for &size in run.sizes.iter().filter(|size| (from..=to).contains(*size)) {
            cases.push(Case {
                machine,
                mode,
                layout,
                size,
            });
        }
    }
    cases
}

/// The largest burden on the first module, and the first registration that it is of.
fn worst(run: &Run, metric: &Metric, cases: &[Case], modules: [Module; 2]) -> Option<(f64, Case)> {
    cases
        .iter()
        .rev()
        .filter_map(|&case| Some((metric.burden(run, case, modules)?, case)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

fn place(case: Case) -> String {
    format!("{}, {}", numbers::size(case.size), case.layout.short())
}

/// With more digits where two would hide on which side of the limit it is.
fn exact_ratio(ratio: f64, limit: f64) -> String {
    let text = numbers::ratio(ratio);
    let rounded: f64 = text.parse().unwrap_or(ratio);
    if (rounded <= limit) == (ratio <= limit) {
        text
    } else {
        format!("{ratio:.5}")
    }
}

/// Ours and nvidia-peermem's, of all registrations that are known of both; the last first, so
/// that of equal ones the first is the largest.
fn both(bound: Bound, run: &Run, whose: Whose) -> Vec<(u64, u64, Case)> {
    let scope = bound.scope();
    let values = |&case: &Case| {
        let metric = scope.metrics.first()?;
        let [ours, theirs] = Module::BOTH.map(|module| (metric.value)(run, case, module));
        Some((ours?, theirs?, case))
    };
    let cases = cases(run, whose, &scope);
    cases.iter().rev().filter_map(values).collect()
}

fn pin_calls(run: &Run, whose: Whose) -> Option<Verdict> {
    let (ours, theirs, case) = both(Bound::PinCalls, run, whose)
        .into_iter()
        .max_by_key(|(ours, theirs, _)| (*ours, u64::MAX - theirs))?;
    Some(Verdict {
        bound: Bound::PinCalls,
        whose,
        met: Some(ours <= 1 && 2 * ours <= theirs),
        measured: format!("{ours} against {theirs}"),
        worst_at: place(case),
    })
}

fn entries(bound: Bound, run: &Run, whose: Whose) -> Option<Verdict> {
    let allowed = |case: Case| case.size.div_ceil(ENTRY);
    let excess = |ours: u64, case| ours as f64 / allowed(case) as f64;
    let (ours, theirs, case) = both(bound, run, whose)
        .into_iter()
        .max_by(|a, b| excess(a.0, a.2).total_cmp(&excess(b.0, b.2)))?;
    Some(Verdict {
        bound,
        whose,
        met: Some(ours <= allowed(case)),
        measured: format!("{ours} ({} allowed), against {theirs}", allowed(case)),
        worst_at: place(case),
    })
}

fn loading(run: &Run, whose: Whose) -> Option<Verdict> {
    let most = Bound::Loading.most(whose)?;
    let [ours, theirs] = Module::BOTH.map(|module| run.module(module)?.sum(&["load"]));
    let ratio = metrics::ratio(ours?, theirs?)?;
    Some(Verdict {
        bound: Bound::Loading,
        whose,
        met: Some(ratio <= most),
        measured: exact_ratio(ratio, most),
        worst_at: "without debug information".to_owned(),
    })
}

fn scaling(run: &Run, whose: Whose) -> Option<Verdict> {
    let scaling = |module| {
        let rate =
            |threads| metrics::module_throughput(run.threads(module, whose.mode, 0, threads)?);
        Some(rate(4)? / rate(1)?)
    };
    let [ours, theirs] = [scaling(Module::Ours)?, scaling(Module::Theirs)?];
    Some(Verdict {
        bound: Bound::Throughput,
        whose,
        met: Some(ours >= theirs),
        measured: format!("{ours:.3} against {theirs:.3}"),
        worst_at: "1 MiB, contiguous".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements;
    use crate::run::samples::{self, CASE};
    use std::collections::BTreeMap;

    const WHOSE: Whose = Whose {
        machine: CASE.machine,
        mode: CASE.mode,
    };

    fn verdict(run: &Run, bound: Bound) -> Verdict {
        bound.judge(run, WHOSE)
    }

    fn published(ours: u64, theirs: u64) -> Run {
        let costs = |value| [("register_total", value), ("deregister_total", 0)];
        samples::run(CASE, [&costs(ours), &costs(theirs)])
    }

    #[test]
    fn a_bound_that_is_just_met_and_one_that_is_just_missed() {
        assert_eq!(
            verdict(&published(5500, 10000), Bound::Total1M).met,
            Some(true)
        );
        let missed = verdict(&published(5501, 10000), Bound::Total1M);
        assert_eq!(missed.met, Some(false));
        assert_eq!(missed.measured, "0.55010");
    }

    #[test]
    fn what_was_not_measured_is_neither() {
        let run = published(1, 2);
        assert_eq!(verdict(&run, Bound::Total16M).met, None);
        for whose in [
            Whose {
                mode: Mode::Persistent,
                ..WHOSE
            },
            Whose {
                machine: Machine::Iommu,
                ..WHOSE
            },
        ] {
            let verdict = Bound::Total1M.judge(&run, whose);
            assert_eq!(verdict.met, None);
            assert_eq!(verdict.text(), "not measured");
        }
        assert_eq!(verdict(&run, Bound::Module).text(), "no bound");
    }

    #[test]
    fn each_machine_has_bounds_of_its_own() {
        let case = Case {
            machine: Machine::Iommu,
            ..CASE
        };
        let costs = |value| [("register_total", value), ("deregister_total", 0)];
        let run = samples::run(case, [&costs(52), &costs(100)]);
        let whose = Whose {
            machine: case.machine,
            ..WHOSE
        };
        assert_eq!(Bound::Total1M.judge(&run, whose).met, Some(false));
        assert_eq!(Bound::Total1M.limit(Machine::Iommu), "0.50");
        assert_eq!(Bound::Total1M.limit(Machine::Stock), "0.55");
    }

    #[test]
    fn the_worst_registration_decides() {
        let freed = |layout, ours, theirs| {
            let case = Case { layout, ..CASE };
            let mut run = samples::run(case, [&[("free_total", ours)], &[("free_total", theirs)]]);
            for measurement in &mut run.measurements {
                measurement.subject.published = None;
                measurement.subject.kind = measurements::Kind::Freed;
            }
            run
        };
        let mut run = freed(Layout::Contiguous, 1, 10);
        run.measurements
            .extend(freed(Layout::Holes2m, 12, 10).measurements);
        let verdict = verdict(&run, Bound::Freed);
        assert_eq!(
            (verdict.met, verdict.measured.as_str()),
            (Some(false), "1.20")
        );
        assert_eq!(verdict.worst_at, "1 MiB, 2 MiB chunks");
    }

    #[test]
    fn one_pin_against_two() {
        let pins = |ours, theirs| {
            let calls = |n| [("calls_nvidia_p2p_get_pages", n)];
            verdict(
                &samples::run(CASE, [&calls(ours), &calls(theirs)]),
                Bound::PinCalls,
            )
        };
        assert_eq!(pins(1, 2).met, Some(true));
        assert_eq!(pins(2, 2).met, Some(false));
        assert_eq!(pins(1, 1).met, Some(false));
    }

    #[test]
    fn an_entry_for_each_2_gib_begun() {
        let entries = |size, ours| {
            let case = Case { size, ..CASE };
            let run = samples::run(case, [&[("entries", ours)], &[("entries", size >> 16)]]);
            verdict(&run, Bound::Entries).met
        };
        assert_eq!(entries(1 << 20, 1), Some(true));
        assert_eq!(entries(4 << 30, 2), Some(true));
        assert_eq!(entries(4 << 30, 3), Some(false));
        assert_eq!(entries(64 << 30, 32), Some(true));
    }

    #[test]
    fn what_is_missed_without_a_known_reason_is_an_error() {
        let missed = verdict(&published(9, 10), Bound::Total1M);
        assert!(matches!(missed.reason(), Some(Err(_))), "{missed:?}");
        let missed = Verdict {
            bound: Bound::Throughput,
            ..missed
        };
        assert!(matches!(missed.reason(), Some(Ok(_))), "{missed:?}");
        assert!(verdict(&published(1, 10), Bound::Total1M)
            .reason()
            .is_none());
    }

    #[test]
    fn a_ground_is_judged_against_the_kernel_s() {
        let costs = |module, total| {
            [
                ("register_module", module),
                ("deregister_module", 0),
                ("register_total", total),
                ("deregister_total", 0),
            ]
        };
        let [kernel, free, ready] = [costs(1000, 10_000), costs(1100, 10_301), costs(1101, 9000)];
        let run = samples::run_of(CASE, Module::GROUNDS, [&kernel, &free, &ready]);
        let met = Bound::GROUNDS.map(|bound| verdict(&run, bound).met);
        assert_eq!(met, [Some(false), Some(true), Some(true), Some(false)]);
        let missed = verdict(&run, Bound::ReadyModule);
        assert_eq!(missed.measured, "1.101");
        assert_eq!(missed.worst_at, "module alone, 1 MiB, contiguous");
        assert!(matches!(missed.reason(), Some(Err(_))), "{missed:?}");
    }

    #[test]
    fn of_a_ground_s_metrics_the_worst_decides() {
        let values = |register, revoke| {
            [
                ("register_module", register),
                ("deregister_module", 0),
                ("revoke_module", revoke),
            ]
        };
        let mut run = samples::run_of(
            CASE,
            Module::GROUNDS,
            [&values(100, 10), &values(100, 12), &values(100, 11)],
        );
        assert_eq!(verdict(&run, Bound::FreeModule).met, Some(true));
        for measurement in &mut run.measurements {
            if measurement.subject.published == Some(1) {
                measurement.subject.published = None;
                measurement.subject.kind = measurements::Kind::Freed;
            }
        }
        assert_eq!(verdict(&run, Bound::FreeModule).met, Some(false));
        assert_eq!(verdict(&run, Bound::ReadyModule).met, Some(true));
    }

    #[test]
    fn scaling_against_scaling() {
        let line = |module: &str, threads: u64, ticks: u64| {
            format!(
                r#"{{"machine":"stock","module":"{module}","mode":"revocable","kind":"threads","published":0,
                "threads":{threads},"registrations":{threads}00,"elapsed":1,"module_ticks":{ticks}}}"#
            )
        };
        let run = |ours, theirs| {
            let lines = [
                line("nv_peer_mem", 1, 100),
                line("nv_peer_mem", 4, ours),
                line("nvidia-peermem", 1, 1000),
                line("nvidia-peermem", 4, theirs),
            ];
            Run {
                method: String::new(),
                facts: BTreeMap::new(),
                sizes: Vec::new(),
                measurements: lines
                    .iter()
                    .map(|line| measurements::parse(line).unwrap())
                    .collect(),
            }
        };
        assert_eq!(verdict(&run(400, 4000), Bound::Throughput).met, Some(true));
        assert_eq!(verdict(&run(500, 4000), Bound::Throughput).met, Some(false));
    }
}
