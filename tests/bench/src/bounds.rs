// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What was promised, and whether it was met. Each bound is judged for both modes, with
//! and without an IOMMU, by the worst of the registrations that it speaks of.
//! Worst-case fragmented memory has a bound of its own: the other ratios are of
//! memory that is contiguous or in chunks of 2 MiB. The module on a ground without the kernel
//! crate is judged against itself on the kernel's, of contiguous and of fragmented memory.

use crate::measurements::{Layout, Machine, Mode, Module};
use crate::metrics::{self, Metric};
use crate::numbers;
use crate::reasons;
use crate::run::{Case, Run};

const GIB: u64 = 1 << 30;

/// What one scatterlist entry is to hold, and what nvidia-peermem's holds.
const ENTRY: u64 = 4 * GIB;
const THEIR_ENTRY: u64 = 64 << 10;

/// How much worse than nvidia-peermem's any metric of the worst layout may be.
const FRAGMENTED: f64 = 1.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    PinCalls,
    Published,
    Module1M,
    Module4G,
    Entries,
    Held,
    Fragmented,
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
    /// Nothing if it was not measured.
    pub met: Option<bool>,
    /// The value, and of which registration it is.
    pub measured: String,
    pub worst_at: String,
    /// Which of several metrics are over.
    pub over: Vec<Over>,
}

/// One of several metrics that a bound is for, with its worst registration.
#[derive(Debug)]
pub struct Over {
    pub metric: &'static str,
    ratio: f64,
    case: Case,
}

impl Bound {
    const GROUNDS: [Self; 4] = [
        Self::FreeTotal,
        Self::FreeModule,
        Self::ReadyTotal,
        Self::ReadyModule,
    ];

    const BESIDE_THEIRS: [Self; 8] = [
        Self::PinCalls,
        Self::Published,
        Self::Module1M,
        Self::Module4G,
        Self::Entries,
        Self::Held,
        Self::Fragmented,
        Self::Throughput,
    ];

    pub fn text(self) -> &'static str {
        match self {
            Self::PinCalls => "driver pin calls per registration",
            Self::Published => {
                "total register+deregister, published driver costs, 64 KiB to 256 MiB"
            }
            Self::Module1M => "module-only instructions, register+deregister, 1 MiB",
            Self::Module4G => "module-only instructions, 4 GiB contiguous",
            Self::Entries => "scatterlist entries, contiguous",
            Self::Held => "kernel memory held, 4 GiB contiguous",
            Self::Fragmented => "worst-case fragmented memory, every metric",
            Self::Throughput => "throughput, 4 threads against 1 (module-only part)",
            Self::FreeTotal => "free: total register+deregister",
            Self::FreeModule => "free: module alone, register+deregister or freed to revoked",
            Self::ReadyTotal => "ready: total register+deregister",
            Self::ReadyModule => "ready: module alone, register+deregister or freed to revoked",
        }
    }

    pub fn limit(self) -> &'static str {
        match self {
            Self::PinCalls => "1 against 2",
            Self::Published => "0.55",
            Self::Module1M => "0.8",
            Self::Module4G => "0.2",
            Self::Entries => "1 per 4 GiB, against 1 per 64 KiB",
            Self::Held => "0.01",
            Self::Fragmented => "1.05",
            Self::Throughput => "no worse than the original's scaling",
            Self::FreeTotal | Self::ReadyTotal => "1.03",
            Self::FreeModule | Self::ReadyModule => "1.10",
        }
    }

    fn judge(self, run: &Run, whose: Whose) -> Verdict {
        const ORDINARY: &[Layout] = &[Layout::Contiguous, Layout::Holes2m];
        const CONTIGUOUS: &[Layout] = &[Layout::Contiguous];
        let over = |limit, metric, layouts, sizes| {
            let cases = cases(run, whose, layouts, sizes);
            worst(run, &metric, &cases, Module::BOTH).map(|worst| self.at_most(limit, whose, worst))
        };
        let on = |ground, limit, metrics| on_ground(self, run, whose, ground, limit, metrics);
        let verdict = match self {
            Self::PinCalls => pin_calls(run, whose),
            Self::Published => over(0.55, metrics::PUBLISHED, ORDINARY, (64 << 10, 256 << 20)),
            Self::Module1M => over(0.8, metrics::MODULE, ORDINARY, (1 << 20, 1 << 20)),
            Self::Module4G => over(0.2, metrics::MODULE, CONTIGUOUS, (4 * GIB, 4 * GIB)),
            Self::Entries => entries(run, whose),
            Self::Held => over(0.01, metrics::HELD, CONTIGUOUS, (4 * GIB, 4 * GIB)),
            Self::Fragmented => fragmented(run, whose),
            Self::Throughput => scaling(run, whose),
            Self::FreeTotal => on(Module::OnFree, 1.03, GROUND_TOTAL),
            Self::FreeModule => on(Module::OnFree, 1.1, GROUND_MODULE),
            Self::ReadyTotal => on(Module::OnReady, 1.03, GROUND_TOTAL),
            Self::ReadyModule => on(Module::OnReady, 1.1, GROUND_MODULE),
        };
        verdict.unwrap_or_else(|| Verdict {
            bound: self,
            whose,
            met: None,
            measured: String::new(),
            worst_at: String::new(),
            over: Vec::new(),
        })
    }

    fn at_most(self, limit: f64, whose: Whose, (ratio, case): (f64, Case)) -> Verdict {
        Verdict {
            bound: self,
            whose,
            met: Some(ratio <= limit),
            measured: exact_ratio(ratio, limit),
            worst_at: place(case),
            over: Vec::new(),
        }
    }
}

impl Verdict {
    /// "met: 0.47 (64 KiB, contiguous)"
    pub fn text(&self) -> String {
        match self.met {
            None => "not measured".to_owned(),
            Some(met) => format!(
                "{}: {} ({})",
                if met { "met" } else { "MISSED" },
                self.measured,
                self.worst_at
            ),
        }
    }

    /// Why it was missed: one reason, or one for each metric that is over. An error is what
    /// no reason is known for.
    pub fn reasons(&self) -> Vec<Result<&'static str, String>> {
        if self.met != Some(false) {
            return Vec::new();
        }
        let reason = |metric| {
            reasons::of(self.bound, self.whose, metric).ok_or_else(|| self.unexplained(metric))
        };
        if self.over.is_empty() {
            return vec![reason(None)];
        }
        let mut reasons = Vec::new();
        for over in &self.over {
            let reason = reason(Some(over.metric));
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        reasons
    }

    fn unexplained(&self, metric: Option<&str>) -> String {
        format!(
            "no reason is known for {}, {}, {} mode",
            metric.unwrap_or(self.bound.text()),
            self.whose.machine.name(),
            self.whose.mode.name()
        )
    }
}

impl Over {
    /// "register, module alone 1.65 (64 KiB, 64 KiB chunks)"
    pub fn text(&self) -> String {
        format!(
            "{} {} ({})",
            self.metric,
            exact_ratio(self.ratio, FRAGMENTED),
            place(self.case)
        )
    }
}

/// Every bound: those beside nvidia-peermem for each machine, then those of the grounds.
pub fn chapters(run: &Run) -> Vec<Chapter> {
    let beside_theirs = |machine: Machine| {
        let mut bounds = Bound::BESIDE_THEIRS.to_vec();
        bounds.retain(|bound| machine == Machine::Stock || *bound != Bound::Throughput);
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

/// All measured registrations of these layouts, of sizes from the one to the other.
fn cases(run: &Run, whose: Whose, layouts: &[Layout], (from, to): (u64, u64)) -> Vec<Case> {
    let Whose { machine, mode } = whose;
    let mut cases = Vec::new();
    for &layout in layouts {
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
fn both(run: &Run, metric: &Metric, cases: &[Case]) -> Vec<(u64, u64, Case)> {
    let values = |&case: &Case| {
        let [ours, theirs] = Module::BOTH.map(|module| (metric.value)(run, case, module));
        Some((ours?, theirs?, case))
    };
    cases.iter().rev().filter_map(values).collect()
}

fn pin_calls(run: &Run, whose: Whose) -> Option<Verdict> {
    let cases = cases(run, whose, &Layout::ALL, (0, u64::MAX));
    let (ours, theirs, case) = both(run, &metrics::PINS, &cases)
        .into_iter()
        .max_by_key(|(ours, theirs, _)| (*ours, u64::MAX - theirs))?;
    Some(Verdict {
        bound: Bound::PinCalls,
        whose,
        met: Some(ours <= 1 && 2 * ours <= theirs),
        measured: format!("{ours} against {theirs}"),
        worst_at: place(case),
        over: Vec::new(),
    })
}

fn entries(run: &Run, whose: Whose) -> Option<Verdict> {
    let allowed = |case: Case| case.size.div_ceil(ENTRY);
    let excess = |ours: u64, case| ours as f64 / allowed(case) as f64;
    let cases = cases(run, whose, &[Layout::Contiguous], (0, u64::MAX));
    let (ours, theirs, case) = both(run, &metrics::ENTRIES, &cases)
        .into_iter()
        .max_by(|a, b| excess(a.0, a.2).total_cmp(&excess(b.0, b.2)))?;
    Some(Verdict {
        bound: Bound::Entries,
        whose,
        met: Some(ours <= allowed(case)),
        measured: format!(
            "{ours} ({} allowed), against {theirs} ({} expected)",
            allowed(case),
            case.size.div_ceil(THEIR_ENTRY)
        ),
        worst_at: place(case),
        over: Vec::new(),
    })
}

fn fragmented(run: &Run, whose: Whose) -> Option<Verdict> {
    let cases = cases(run, whose, &[Layout::Holes64k], (0, u64::MAX));
    let mut worsts: Vec<Over> = metrics::ALL
        .iter()
        .filter_map(|metric| {
            let (ratio, case) = worst(run, metric, &cases, Module::BOTH)?;
            Some(Over {
                metric: metric.label,
                ratio,
                case,
            })
        })
        .collect();
    worsts.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let &Over {
        metric,
        ratio,
        case,
    } = worsts.first()?;
    worsts.retain(|worst| worst.ratio > FRAGMENTED);
    Some(Verdict {
        over: worsts,
        worst_at: format!("{metric}, {}", place(case)),
        ..Bound::Fragmented.at_most(FRAGMENTED, whose, (ratio, case))
    })
}

/// What the bounds of a ground are for: the worst of these metrics decides.
const GROUND_TOTAL: &[Metric] = &[metrics::TOTAL];
const GROUND_MODULE: &[Metric] = &[metrics::MODULE, metrics::REVOKE_MODULE];

fn on_ground(
    bound: Bound,
    run: &Run,
    whose: Whose,
    ground: Module,
    limit: f64,
    metrics: &[Metric],
) -> Option<Verdict> {
    let cases = cases(run, whose, &Layout::ENDS, (0, u64::MAX));
    let (metric, worst) = metrics
        .iter()
        .filter_map(|metric| {
            let worst = worst(run, metric, &cases, [ground, Module::OnKernel])?;
            Some((metric.label, worst))
        })
        .max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    Some(Verdict {
        measured: format!("{:.3}", worst.0),
        worst_at: format!("{metric}, {}", place(worst.1)),
        ..bound.at_most(limit, whose, worst)
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
        over: Vec::new(),
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

    fn module_costs(ours: u64, theirs: u64) -> Run {
        let costs = |value| [("register_module", value), ("deregister_module", 0)];
        samples::run(CASE, [&costs(ours), &costs(theirs)])
    }

    #[test]
    fn a_bound_that_is_just_met_and_one_that_is_just_missed() {
        assert_eq!(
            verdict(&module_costs(8000, 10000), Bound::Module1M).met,
            Some(true)
        );
        let missed = verdict(&module_costs(8001, 10000), Bound::Module1M);
        assert_eq!(missed.met, Some(false));
        assert_eq!(missed.measured, "0.80010");
    }

    #[test]
    fn what_was_not_measured_is_neither() {
        let run = module_costs(1, 2);
        assert_eq!(verdict(&run, Bound::Module4G).met, None);
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
            assert_eq!(Bound::Module1M.judge(&run, whose).met, None);
        }
    }

    #[test]
    fn the_worst_registration_decides() {
        let mut run = module_costs(1, 10);
        let case = Case {
            layout: Layout::Holes2m,
            ..CASE
        };
        let costs = |value| [("register_module", value), ("deregister_module", 0)];
        run.measurements
            .extend(samples::run(case, [&costs(9), &costs(10)]).measurements);
        let verdict = verdict(&run, Bound::Module1M);
        assert_eq!(
            (verdict.met, verdict.measured.as_str()),
            (Some(false), "0.90")
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
    fn an_entry_for_each_4_gib_begun() {
        let entries = |size, ours| {
            let case = Case { size, ..CASE };
            let run = samples::run(case, [&[("entries", ours)], &[("entries", size >> 16)]]);
            verdict(&run, Bound::Entries).met
        };
        assert_eq!(entries(1 << 20, 1), Some(true));
        assert_eq!(entries(4 << 30, 1), Some(true));
        assert_eq!(entries(4 << 30, 2), Some(false));
        assert_eq!(entries(64 << 30, 16), Some(true));
    }

    #[test]
    fn fragmented_memory_names_what_is_over() {
        let case = Case {
            layout: Layout::Holes64k,
            ..CASE
        };
        let ours = [
            ("register_total", 106),
            ("deregister_total", 105),
            ("page_size", 50),
        ];
        let theirs = [
            ("register_total", 100),
            ("deregister_total", 100),
            ("page_size", 100),
        ];
        let verdict = verdict(&samples::run(case, [&ours, &theirs]), Bound::Fragmented);
        assert_eq!(verdict.met, Some(false));
        assert_eq!(verdict.measured, "2.00");
        assert_eq!(verdict.over.len(), 3, "{:?}", verdict.over);
        assert!(verdict.over[0]
            .text()
            .starts_with("best HCA page size 2.00"));
    }

    #[test]
    fn what_is_missed_without_a_known_reason_is_an_error() {
        let missed = verdict(&module_costs(9, 10), Bound::Module1M);
        assert!(matches!(missed.reasons()[..], [Ok(_)]), "{missed:?}");
        let missed = Verdict {
            bound: Bound::PinCalls,
            ..missed
        };
        assert!(matches!(missed.reasons()[..], [Err(_)]), "{missed:?}");
        let met = verdict(&module_costs(1, 10), Bound::Module1M);
        assert!(met.reasons().is_empty());
    }

    #[test]
    fn each_metric_that_is_over_wants_a_reason() {
        let case = Case {
            layout: Layout::Holes64k,
            ..CASE
        };
        let costs = |register, entries, deregister| {
            [
                ("register_module", register),
                ("entries", entries),
                ("deregister_module", deregister),
            ]
        };
        let [ours, theirs] = [costs(4, 3, 2), costs(1, 1, 1)];
        let verdict = verdict(&samples::run(case, [&ours, &theirs]), Bound::Fragmented);
        let reasons = verdict.reasons();
        assert_eq!((verdict.over.len(), reasons.len()), (3, 2), "{reasons:?}");
        let expected = "no reason is known for scatterlist entries, without IOMMU, revocable mode";
        assert!(reasons.contains(&Err(expected.to_owned())), "{reasons:?}");
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
        assert!(matches!(missed.reasons()[..], [Err(_)]), "{missed:?}");
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
                measurement.subject.kind = measurements::Kind::Revoked;
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
