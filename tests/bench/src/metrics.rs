// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What is compared of a registration, and the ratio of one module's to another's.

use crate::measurements::{Measurement, Module};
use crate::numbers;
use crate::run::{Case, Run};

/// One thing that is compared.
#[derive(Clone, Copy)]
pub struct Metric {
    pub label: &'static str,
    pub format: fn(u64) -> String,
    /// Whether the larger one is the better.
    pub gain: bool,
    pub value: fn(&Run, Case, Module) -> Option<u64>,
}

impl Metric {
    /// The first module's / the second's.
    pub fn ratio(&self, run: &Run, case: Case, modules: [Module; 2]) -> Option<f64> {
        let [first, second] = modules.map(|module| (self.value)(run, case, module));
        ratio(first?, second?)
    }

    /// The same, turned so that less is better whatever is compared.
    pub fn burden(&self, run: &Run, case: Case, [first, second]: [Module; 2]) -> Option<f64> {
        if self.gain {
            self.ratio(run, case, [second, first])
        } else {
            self.ratio(run, case, [first, second])
        }
    }
}

/// Nothing against nothing is even.
pub fn ratio(ours: u64, theirs: u64) -> Option<f64> {
    match (ours, theirs) {
        (0, 0) => Some(1.0),
        (_, 0) => None,
        (ours, theirs) => Some(ours as f64 / theirs as f64),
    }
}

const fn cost(label: &'static str, value: fn(&Run, Case, Module) -> Option<u64>) -> Metric {
    Metric {
        label,
        format: numbers::count,
        gain: false,
        value,
    }
}

fn simulated(run: &Run, case: Case, module: Module, names: &[&str]) -> Option<u64> {
    run.costs(case, module, 0)?.sum(names)
}

fn published(run: &Run, case: Case, module: Module, names: &[&str]) -> Option<u64> {
    run.costs(case, module, 1)?.sum(names)
}

fn calls(run: &Run, case: Case, module: Module, functions: &[&str]) -> Option<u64> {
    run.costs(case, module, 0)
        .map(|measurement: &Measurement| measurement.calls(functions))
}

const REGISTER_MODULE: Metric = cost("register, module alone", |run, case, module| {
    simulated(run, case, module, &["register_module"])
});

const DEREGISTER_MODULE: Metric = cost("deregister, module alone", |run, case, module| {
    simulated(run, case, module, &["deregister_module"])
});

const REGISTER_TOTAL: Metric = cost("register, total", |run, case, module| {
    simulated(run, case, module, &["register_total"])
});

const DEREGISTER_TOTAL: Metric = cost("deregister, total", |run, case, module| {
    simulated(run, case, module, &["deregister_total"])
});

const REGISTER_PUBLISHED: Metric = Metric {
    format: numbers::microseconds,
    ..cost("register, published costs (us)", |run, case, module| {
        published(run, case, module, &["register_total"])
    })
};

const DEREGISTER_PUBLISHED: Metric = Metric {
    format: numbers::microseconds,
    ..cost("deregister, published costs (us)", |run, case, module| {
        published(run, case, module, &["deregister_total"])
    })
};

const DRIVER_CALLS: Metric = cost("calls into the driver", |run, case, module| {
    calls(run, case, module, &[""])
});

pub const PINS: Metric = cost("of these, to pin", |run, case, module| {
    calls(run, case, module, &["nvidia_p2p_get_pages"])
});

pub const ENTRIES: Metric = cost("scatterlist entries", |run, case, module| {
    simulated(run, case, module, &["entries"])
});

const PAGE_SIZE: Metric = Metric {
    format: numbers::short_size,
    gain: true,
    ..cost("best HCA page size", |run, case, module| {
        simulated(run, case, module, &["page_size"])
    })
};

pub const HELD: Metric = cost("kernel memory held, bytes", |run, case, module| {
    run.held(case, module)
});

pub const REVOKE_MODULE: Metric = cost("in the callback, module alone", |run, case, module| {
    run.freed(case, module)?.sum(&["revoke_module"])
});

pub const FREED: Metric = cost("cudaFree until it returns", |run, case, module| {
    run.freed(case, module)?.sum(&["free_total"])
});

pub const MODULE: Metric = cost("module alone", |run, case, module| {
    simulated(run, case, module, &["register_module", "deregister_module"])
});

pub const TOTAL: Metric = cost("total", |run, case, module| {
    simulated(run, case, module, &["register_total", "deregister_total"])
});

pub const PUBLISHED: Metric = Metric {
    format: numbers::microseconds,
    ..cost("published costs (us)", |run, case, module| {
        published(run, case, module, &["register_total", "deregister_total"])
    })
};

/// Everything that is measured of a registration.
pub const ALL: &[Metric] = &[
    REGISTER_MODULE,
    DEREGISTER_MODULE,
    REGISTER_TOTAL,
    DEREGISTER_TOTAL,
    REGISTER_PUBLISHED,
    DEREGISTER_PUBLISHED,
    DRIVER_CALLS,
    PINS,
    ENTRIES,
    PAGE_SIZE,
    HELD,
    FREED,
];

/// In short: both halves together.
pub const SHORT: &[Metric] = &[MODULE, TOTAL, PUBLISHED, ENTRIES, PAGE_SIZE, HELD, FREED];

/// In which the grounds are compared.
pub const GROUNDS: &[Metric] = &[MODULE, TOTAL, REVOKE_MODULE, FREED];

/// Registrations each second, by the guest's clock, of a measurement of threads.
pub fn throughput(measurement: &Measurement) -> Option<f64> {
    rate(
        measurement.sum(&["registrations"])?,
        measurement.sum(&["elapsed"])?,
    )
}

/// What they would be if nothing took time but the module: each thread spends its
/// share of the ticks there.
pub fn module_throughput(measurement: &Measurement) -> Option<f64> {
    let share = measurement.sum(&["module_ticks"])? / measurement.subject.threads?.max(1);
    rate(measurement.sum(&["registrations"])?, share)
}

fn rate(times: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| times as f64 * 1e9 / ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements;
    use crate::run::samples;

    #[test]
    fn ratios() {
        assert_eq!(ratio(1, 4), Some(0.25));
        assert_eq!(ratio(0, 0), Some(1.0));
        assert_eq!(ratio(1, 0), None);
    }

    #[test]
    fn both_halves_count() {
        let ours = [("register_module", 30), ("deregister_module", 10)];
        let theirs = [("register_module", 60), ("deregister_module", 20)];
        let run = samples::run(samples::CASE, [&ours, &theirs]);
        assert_eq!(MODULE.ratio(&run, samples::CASE, Module::BOTH), Some(0.5));
        assert_eq!(TOTAL.ratio(&run, samples::CASE, Module::BOTH), None);
    }

    #[test]
    fn larger_pages_are_no_burden() {
        let run = samples::run(
            samples::CASE,
            [&[("page_size", 131_072)], &[("page_size", 65_536)]],
        );
        let case = samples::CASE;
        assert_eq!(PAGE_SIZE.ratio(&run, case, Module::BOTH), Some(2.0));
        assert_eq!(PAGE_SIZE.burden(&run, case, Module::BOTH), Some(0.5));
    }

    #[test]
    fn throughput_of_threads_that_share_the_time() {
        let measurement = measurements::parse(
            r#"{"machine":"stock","module":"nv_peer_mem","mode":"revocable","kind":"threads","published":0,
            "threads":4,"registrations":800,"elapsed":1000000,"module_ticks":400000,"driver_ticks":7}"#,
        )
        .unwrap();
        assert_eq!(throughput(&measurement), Some(8e5));
        assert_eq!(module_throughput(&measurement), Some(8e6));
    }
}
