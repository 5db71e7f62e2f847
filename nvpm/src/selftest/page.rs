// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Shows the rates of `nvpm selftest --bandwidth` on one page for a browser, as a heat map of the GPUs and RDMA
//! devices.
use crate::selftest::matrix::{FAILED, LOADS, SOFTWARE, allowed, by_way, columns, rows, way};
use crate::selftest::trial::Trial;
use crate::selftest::wording::{gigabytes, plural};
use crate::show::page::{Markup, element, escaped, heat, legend, page, row, table, tiles};

const SHARE_OF: &str = "the rate that the links allow, or of the best pair if that is not known";

/// Returns the page. `not_tested` has the devices that were not tested, with the reasons.
pub fn as_page(host: &str, trials: &[Trial], not_tested: &[(String, String)], is_software: bool) -> String {
    let failed = trials.iter().filter(|trial| trial.failure.is_some()).count();
    let slow: usize = trials.iter().map(|trial| trial.remarks.len()).sum();
    let result = match (failed, slow) {
        (0, 0) => "all passed".to_owned(),
        _ => format!("{failed} failed, {} marked", plural(slow, "rate")),
    };
    let title = format!("{host}: {} of GPU and RDMA device: {result}", plural(trials.len(), "pair"));
    let passed = trials.len() - failed;
    let class = |is_good: bool| if is_good { "good" } else { "bad" };
    let mut body = vec![
        element("h1", &title, ""),
        tiles(&[
            (failed, "✗ failed", class(failed == 0)),
            (slow, "! rates marked", class(slow == 0)),
            (passed, "✓ passed", class(passed > 0)),
        ]),
    ];
    body.extend(remarks(trials, not_tested));
    body.push(element("h2", "Measured rates", ""));
    if is_software {
        body.push(element("p", SOFTWARE, ""));
    }
    body.push(legend(SHARE_OF));
    body.extend(by_way(trials).iter().map(|chosen| matrix(chosen)));
    page(&title, &body)
}

/// Returns a table of the trials that failed or are slow, and of the devices that were not tested.
fn remarks(trials: &[Trial], not_tested: &[(String, String)]) -> Vec<Markup> {
    let line = |name: &str, result: &str, found: &str| {
        row(&escaped(name), &[element("td", result, ""), element("td", found, "")], 1)
    };
    let mut lines = Vec::new();
    for trial in trials {
        let way = if trial.by_dma_buf { ", dma-buf" } else { "" };
        let name = format!("GPU {} with {}{way}", trial.gpu, trial.device);
        lines.extend(trial.failure.iter().map(|failure| line(&name, "✗ failed", failure)));
        lines.extend(trial.remarks.iter().map(|remark| line(&name, "! slow", remark)));
    }
    lines.extend(not_tested.iter().map(|(device, reason)| line(device, "not tested", reason)));
    if lines.is_empty() {
        return Vec::new();
    }
    let head = ["Pair", "Result", "What was found"].map(str::to_owned);
    vec![element("h2", "What needs attention", ""), table("The likely cause is a guess.", &head, &lines, "")]
}

/// Returns a table with a row for each RDMA device and a column for each GPU.
fn matrix(trials: &[&Trial]) -> Markup {
    let rates = trials.iter().flat_map(|trial| [trial.to_gpu, trial.from_gpu]);
    let best = rates.fold(0.0, |best: f64, rate| best.max(rate.unwrap_or_default()));
    let columns = columns(trials);
    let mut lines = Vec::new();
    for (device, its) in rows(trials) {
        let of_gpu = |gpu: &i32| its.iter().find(|trial| trial.gpu == *gpu).copied();
        let mut cells: Vec<Markup> = columns.iter().map(|gpu| cell(of_gpu(gpu), best)).collect();
        cells.push(element("td", &allowed(&its), ""));
        lines.push(row(&escaped(device), &cells, 1));
    }
    let mut head = vec!["RDMA device".to_owned()];
    head.extend(columns.iter().map(|gpu| format!("GPU {gpu}")));
    head.push("links allow".to_owned());
    let caption = format!("by {}: GB/s to the GPU / from the GPU. {LOADS}", way(trials));
    table(&caption, &head, &lines, "heat")
}

fn cell(trial: Option<&Trial>, best: f64) -> Markup {
    let Some(trial) = trial else { return element("td", "-", "") };
    if trial.failure.is_some() {
        return heat(None, FAILED, "");
    }
    let rates = [trial.to_gpu, trial.from_gpu].map(Option::unwrap_or_default);
    let below = if trial.remarks.is_empty() { "" } else { "! slow" };
    heat(Some(share(trial, rates, best)), &rates.map(gigabytes).join(" / "), below)
}

/// Returns the share of its limit that the direction with the smaller share reaches. BEST stands for a limit that is
/// not known.
fn share(trial: &Trial, rates: [f64; 2], best: f64) -> f64 {
    let limits = trial.limits.iter().map(|limit| limit.as_ref().map_or(best, |limit| limit.rate));
    let of_limit = |(rate, limit): (f64, f64)| if limit > 0.0 { rate / limit } else { 1.0 };
    rates.into_iter().zip(limits).map(of_limit).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::bound::{Bound, Part};

    #[test]
    fn each_direction_has_a_share_of_its_own_limit() {
        let bound = |rate: f64| Some(Bound { rate: rate * 1e9, what: "a link".to_owned(), part: Part::Hop });
        // The rates and the limits to the GPU and from the GPU, and the share in hundredths.
        for (rates, limits, expected) in [
            ([7.0, 7.0], [bound(50.0), bound(7.0)], 14.0),
            ([50.0, 3.5], [bound(50.0), bound(7.0)], 50.0),
            ([30.0, 10.0], [None, bound(10.0)], 75.0),
            ([30.0, 10.0], [None, None], 25.0),
        ] {
            let mut trial = Trial::with_rates(0, "mlx5_0", rates, None);
            trial.limits = limits;
            let found = share(&trial, rates.map(|rate| rate * 1e9), 40e9);
            assert!((found * 100.0 - expected).abs() < 1e-6, "{rates:?} {found}");
        }
        let trial = Trial::with_rates(0, "mlx5_0", [0.0, 0.0], None);
        assert!((share(&trial, [0.0, 0.0], 0.0) - 1.0).abs() < 1e-6);
    }
}
