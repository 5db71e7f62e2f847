// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges the rates of all pairs. Each rate is compared with the rate that the pair's links allow, and with the rate of
//! the best pair.
use crate::facts::bound::Bound;
use crate::facts::distances::Distance;
use crate::read::machine::Machine;
use crate::selftest::limits::is_software;
use crate::selftest::trial::Trial;
use crate::selftest::wording::gigabytes;

/// A rate is marked if it is below this share of the rate that the links allow, or of the best rate.
const SHARE: f64 = 0.5;

const DIRECTIONS: [&str; 2] = ["to the GPU (the device writes)", "from the GPU (the device reads)"];
const SWITCHED: &str = "ACS redirect at the switch (nvpm status: PCI, ACS), the IOMMU, or another load";

/// Returns the likely cause if a direction is slow or does not work, by the distance of the pair.
fn likely(distance: Option<Distance>) -> &'static str {
    match distance {
        Some(Distance::Phb) => "the root complex: some forward reads between their root ports slowly or not at all",
        Some(Distance::Node) => "two root complexes, between which the data passes the processor",
        Some(Distance::Sys) => "the link between the processors, which the data crosses",
        _ => SWITCHED,
    }
}

/// The rate of a trial in one direction, and the rate that the links allow.
type Way<'a> = (Option<f64>, Option<&'a Bound>);

/// The best pair in one direction.
struct Best {
    rate: f64,
    limit: Option<Bound>,
}

/// Adds a remark to each trial for each slow direction.
pub fn judge(trials: &mut [Trial]) {
    let ways: [fn(&Trial) -> Way; 2] = [
        |trial| (trial.to_gpu, trial.limits.first().and_then(Option::as_ref)),
        |trial| (trial.from_gpu, trial.limits.last().and_then(Option::as_ref)),
    ];
    for (way, direction) in ways.into_iter().zip(DIRECTIONS) {
        let mut best: Option<Best> = None;
        for trial in trials.iter() {
            let (Some(rate), limit) = way(trial) else { continue };
            if best.as_ref().is_none_or(|best| rate > best.rate) {
                best = Some(Best { rate, limit: limit.cloned() });
            }
        }
        let Some(best) = best else { continue };
        for trial in trials.iter_mut() {
            let (rate, limit) = way(trial);
            let remark = rate.and_then(|rate| remark(trial, rate, limit, &best, direction));
            trial.remarks.extend(remark);
        }
    }
}

fn remark(trial: &Trial, rate: f64, limit: Option<&Bound>, best: &Best, direction: &str) -> Option<String> {
    let text = format!("{} GB/s {direction}", gigabytes(rate));
    let cause = likely(trial.distance);
    if let Some(limit) = limit.filter(|limit| rate < SHARE * limit.rate) {
        return Some(format!("{text}, where {} allows {}; likely {cause}", limit.what, gigabytes(limit.rate)));
    }
    // Slower links explain a slower rate.
    let is_slower = matches!((limit, &best.limit), (Some(own), Some(others)) if own.rate < others.rate);
    let is_marked = !is_slower && rate < SHARE * best.rate;
    is_marked.then(|| format!("{text}, and the best pair reaches {}; likely {cause}", gigabytes(best.rate)))
}

pub fn all_software(machine: &Machine, trials: &[Trial]) -> bool {
    !trials.is_empty() && trials.iter().all(|trial| is_software(machine, &trial.device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::bound::Part;
    use crate::made::Made;

    #[test]
    fn devices_of_software_may_be_the_only_ones() {
        let made = Made::new();
        made.change(["/sys/class/infiniband/rxe0/node_type = 1: CA"]);
        let machine = made.read();
        let trials = ["rxe0", "mlx5_0"].map(|device| Trial::with_rates(0, device, [1.0, 1.0], None));
        assert!(all_software(&machine, &trials[..1]));
        assert!(!all_software(&machine, &trials) && !all_software(&machine, &[]));
    }

    #[test]
    fn rates_below_half_are_marked() {
        for (rates, marked) in [
            // Each direction has its own best pair. A rate is marked below half of the best rate.
            ([([20.0, 4.0], None), ([5.0, 10.0], None)], [1, 1]),
            ([([20.0, 5.0], None), ([10.0, 10.0], None)], [0, 0]),
            ([([20.0, 20.0], None), ([9.9, 9.9], None)], [0, 2]),
            // A rate is also marked below half of the rate that the links allow.
            ([([20.0, 20.0], Some(40.0)), ([20.0, 19.0], Some(40.0))], [0, 1]),
            // Slower links explain a slower rate, and equal links do not.
            ([([20.0, 20.0], Some(30.0)), ([9.0, 9.0], Some(15.0))], [0, 0]),
            ([([50.0, 50.0], Some(15.0)), ([9.0, 9.0], Some(15.0))], [0, 2]),
        ] {
            let mut trials = rates.map(|(rates, limit)| Trial::with_rates(0, "mlx5_0", rates, limit));
            judge(&mut trials);
            assert_eq!(trials.each_ref().map(|trial| trial.remarks.len()), marked);
            for trial in &mut trials {
                trial.remarks.clear();
            }
            trials.reverse();
            judge(&mut trials);
            trials.reverse();
            assert_eq!(trials.each_ref().map(|trial| trial.remarks.len()), marked);
        }
    }

    #[test]
    fn each_direction_has_its_own_limit() {
        let bound = |rate: f64| Some(Bound { rate: rate * 1e9, what: "a link".to_owned(), part: Part::Hop });
        for (rates, marked) in [([40.0, 7.0], 0), ([7.0, 7.0], 1), ([40.0, 3.0], 1)] {
            let mut trials = [Trial::with_rates(0, "mlx5_0", rates, None)];
            trials[0].limits = [bound(50.0), bound(7.2)];
            judge(&mut trials);
            assert_eq!(trials[0].remarks.len(), marked, "{rates:?}");
        }
    }

    #[test]
    fn remarks_name_a_cause() {
        let mut trials = [[20.0, 20.0], [0.05, 20.0], [20.0, 1.0]].map(|rates| Trial::with_rates(0, "x", rates, None));
        trials[1].distance = Some(Distance::Phb);
        trials[2].limits[1] = Some(Bound { rate: 4e9, what: "port 32 Gb/s".to_owned(), part: Part::Port });
        judge(&mut trials);
        let text = "0.050 GB/s to the GPU (the device writes), and the best pair reaches 20.0; likely the root complex: \
                    some forward reads between their root ports slowly or not at all";
        assert_eq!(trials[1].remarks, [text]);
        let text = "1.0 GB/s from the GPU (the device reads), where port 32 Gb/s allows 4.0; likely ACS redirect at the \
                    switch (nvpm status: PCI, ACS), the IOMMU, or another load";
        assert_eq!(trials[2].remarks, [text]);
    }
}
