// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Folds facts into lines. If several devices have the same fact, one line has the fact and the names of the devices.
use crate::facts::fact::Fact;

/// A fact. If several devices have the same fact, the line has all of these devices.
pub struct Line {
    pub section: String,
    pub fact: Fact,
    pub devices: Vec<String>,
}

impl Line {
    /// Returns the fact's name. If the fact concerns exactly one device, the name of the device stands before it.
    pub fn title(&self) -> String {
        match self.devices.as_slice() {
            [device] => format!("{device} {}", self.fact.name),
            _ => self.fact.name.clone(),
        }
    }
}

/// Returns the device of a section, such as "RDMA device `mlx5_0`", because each device has a section of its own.
pub fn device_of(section: &str) -> Option<&str> {
    section.strip_prefix("GPU ").or_else(|| section.strip_prefix("RDMA device "))
}

/// Returns the name of the section as printed, and the device, which is an empty string if the fact does not concern a
/// device. The sections of all devices of a kind are printed as one section.
pub fn section_of(fact: &Fact) -> (String, String) {
    match device_of(&fact.section) {
        Some(device) => {
            let kind = fact.section.strip_suffix(device).unwrap_or_default().trim_end();
            (format!("{kind}s"), device.to_owned())
        }
        None => (fact.section.clone(), String::new()),
    }
}

pub fn lines_of<'a>(facts: impl IntoIterator<Item = &'a Fact>) -> Vec<Line> {
    let mut found: Vec<Line> = Vec::new();
    for fact in facts {
        let (section, device) = section_of(fact);
        // Each device has each fact only once, so an equal fact is about another device.
        let is_same = |line: &&mut Line| {
            let (one, other) = (&line.fact, fact);
            line.section == section
                && one.name == other.name
                && one.verdict == other.verdict
                && one.value == other.value
                && one.advice == other.advice
        };
        let same = if device.is_empty() { None } else { found.iter_mut().find(is_same) };
        if let Some(line) = same {
            line.devices.push(device);
            continue;
        }
        let devices = if device.is_empty() { Vec::new() } else { vec![device] };
        found.push(Line { section, fact: fact.clone(), devices });
    }
    found
}
