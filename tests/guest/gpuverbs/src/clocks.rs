// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the lab's RDMA core and driver have on their clocks: how often each
//! call was made, and for how long.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use crate::failure::Failure;

const CORE: &str = "/sys/kernel/debug/peer_mem_lab/clocks";
const DRIVER: &str = "/sys/kernel/debug/nvidia_lab/clocks";

/// The core's calls into a client. Others on its clock are not, or are inside
/// of the driver's callback.
const CLIENT_CALLS: &[&str] = &[
    "acquire",
    "get_pages",
    "dma_map",
    "get_page_size",
    "dma_unmap",
    "put_pages",
    "release",
];

const CALLBACK: &str = "free_callback";
const FREE: &str = "free_memory";
const INVALIDATE: &str = "invalidate";

#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    calls: u64,
    ticks: u64,
}

/// All clocks at one moment.
pub struct Clocks {
    core: BTreeMap<String, Clock>,
    driver: BTreeMap<String, Clock>,
}

/// What happened between two moments.
#[derive(Clone, Debug, Default)]
pub struct Spent {
    /// In the client alone: without the driver's calls that it made.
    pub module: u64,
    /// In the driver's calls.
    pub driver: u64,
    /// In the driver's free callback, and how much of it in the core.
    pub callback: u64,
    pub invalidation: u64,
    /// In all that the driver does to free memory, the callback included.
    pub free: u64,
    /// How often each of the driver's calls was made, without those that were not.
    pub calls: BTreeMap<String, u64>,
}

impl Clocks {
    pub fn read() -> Result<Self, Failure> {
        Ok(Self {
            core: read(CORE)?,
            driver: read(DRIVER)?,
        })
    }

    pub fn since(&self, before: &Self) -> Spent {
        let core = difference(&self.core, &before.core);
        let mut driver = difference(&self.driver, &before.driver);
        let callback = driver.remove(CALLBACK).unwrap_or_default();
        let free = driver.remove(FREE).unwrap_or_default();
        let in_driver: u64 = driver.values().map(|clock| clock.ticks).sum();
        let in_client: u64 = CLIENT_CALLS
            .iter()
            .filter_map(|name| core.get(*name))
            .map(|clock| clock.ticks)
            .sum();
        Spent {
            module: in_client.saturating_sub(in_driver),
            driver: in_driver,
            callback: callback.ticks,
            free: free.ticks,
            invalidation: core.get(INVALIDATE).map_or(0, |clock| clock.ticks),
            calls: driver
                .into_iter()
                .filter(|(_, clock)| clock.calls > 0)
                .map(|(name, clock)| (name, clock.calls))
                .collect(),
        }
    }
}

fn difference(
    now: &BTreeMap<String, Clock>,
    then: &BTreeMap<String, Clock>,
) -> BTreeMap<String, Clock> {
    now.iter()
        .map(|(name, clock)| {
            let before = then.get(name).copied().unwrap_or_default();
            let spent = Clock {
                calls: clock.calls.wrapping_sub(before.calls),
                ticks: clock.ticks.wrapping_sub(before.ticks),
            };
            (name.clone(), spent)
        })
        .collect()
}

fn read(path: &str) -> Result<BTreeMap<String, Clock>, Failure> {
    fs::read_to_string(path)
        .and_then(|text| text.lines().map(parse).collect())
        .map_err(Failure::environment(format_args!(
            "cannot read the lab's clocks in {path}"
        )))
}

/// A line "name calls ticks".
fn parse(line: &str) -> io::Result<(String, Clock)> {
    let mut words = line.split(' ');
    let number = |text: Option<&str>| -> io::Result<u64> {
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
    };
    let name = words.next().unwrap_or_default().to_owned();
    let clock = Clock {
        calls: number(words.next())?,
        ticks: number(words.next())?,
    };
    Ok((name, clock))
}
