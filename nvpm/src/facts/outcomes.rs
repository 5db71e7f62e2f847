// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the way that each program takes to the memory of each GPU, with each RDMA device of this node. Each program
//! has its own order and its own tests, and does not ask the module.
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::{IndexMap, IndexSet};

use crate::facts::consumers::{EFA, PROGRAMS, Program, Try};
use crate::read::dma_buf::{answers, exported};
use crate::read::kernel_symbols::peer_memory_in;
use crate::read::machine::Machine;
use crate::read::pci::nics;
use crate::read::ways::{self, DMA_BUF, Pair};

const DRIVER_PARAMETERS: &str = "/proc/driver/nvidia/params";

pub const BAD_NAME: &str = "the RDMA device does not have mlx, bnxt_re or roce in its name";
const GPU_ALONE: &str = "it asks the GPU's driver alone, chooses dma-buf, and this device takes none";
const MISLED: &str = "this device says yes, the program chooses dma-buf, and the device then refuses it";

/// The way that a program takes with a pair of a GPU and an RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// The name of a module or a driver, or dma-buf. Empty if the program finds no way.
    pub way: String,
    /// The setting without which the program does not take the way.
    pub setting: &'static str,
    /// The sign of peer memory that the program sees.
    pub sees: &'static str,
    /// The reason why the program finds no way.
    pub why: String,
    /// The program cannot use this RDMA device at all.
    pub unfit: bool,
}

impl Outcome {
    fn none(why: impl Into<String>) -> Self {
        Self { why: why.into(), ..Self::default() }
    }

    /// Returns whether the program has chosen dma-buf in vain, so that no sign of peer memory would change anything.
    pub fn has_chosen(&self) -> bool {
        [GPU_ALONE, MISLED].contains(&self.why.as_str())
    }
}

/// An RDMA device, as programs tell devices apart.
#[derive(PartialEq, Eq, Hash)]
pub struct Device {
    pub name: String,
    pub driver: String,
    /// The number of the product on PCI.
    pub number: String,
    /// The device says yes to a program that asks for dma-buf, and then refuses each dma-buf.
    misleads: bool,
}

fn devices(machine: &Machine) -> IndexMap<String, Device> {
    let answers = answers(machine);
    let device = |nic: &crate::read::pci::Nic| Device {
        name: nic.name.clone(),
        driver: nic.driver(machine),
        number: nic.pci.as_ref().map(|pci| pci.text(machine, "device")).unwrap_or_default(),
        misleads: answers.get(&nic.name).is_some_and(|answer| answer.misleads),
    };
    nics(machine).iter().map(|nic| (nic.name.clone(), device(nic))).collect()
}

/// The outcomes of one program.
pub type ByPair = IndexMap<Pair, Outcome>;

/// Returns the outcome of each program with each pair of a GPU and a device. A program that can use only EFA devices
/// has no outcome with another device, because nobody would run the program there.
pub fn outcomes(machine: &Machine) -> Rc<IndexMap<&'static str, ByPair>> {
    machine.once(compute_outcomes)
}

fn compute_outcomes(machine: &Machine) -> IndexMap<&'static str, ByPair> {
    let (devices, pairs) = (devices(machine), ways::of_pairs(machine));
    let mut found: IndexMap<&'static str, ByPair> = IndexMap::new();
    for program in PROGRAMS {
        // Many pairs have the same device and the same ways.
        let mut known: HashMap<(&Device, &Vec<String>), Outcome> = HashMap::new();
        for (pair, here) in pairs.iter() {
            let Some(device) = devices.get(&pair.1) else { continue };
            if program.is_for_efa() && device.driver != EFA {
                continue;
            }
            let outcome =
                known.entry((device, here)).or_insert_with(|| outcome_of(machine, program, device, here)).clone();
            found.entry(program.name).or_default().insert(pair.clone(), outcome);
        }
    }
    found
}

/// Returns the way that the program takes with a pair. HERE has the pair's ways.
fn outcome_of(machine: &Machine, program: &Program, device: &Device, here: &[String]) -> Outcome {
    if let Some(why) = misfit(program, device) {
        return Outcome { unfit: true, ..Outcome::none(why) };
    }
    if !option_set(machine, program.option) {
        return Outcome::none(format!("it needs NVreg_RegistryDwords={} of nvidia", program.option));
    }
    let served = here.iter().find(|way| *way != DMA_BUF);
    let by_dma_buf = here.iter().any(|way| way == DMA_BUF);
    let mut looks = true;
    for attempt in program.tries.iter().filter(|attempt| attempt.takes(device)) {
        if attempt.dma_buf && by_dma_buf {
            return Outcome { way: DMA_BUF.to_owned(), setting: attempt.setting, ..Outcome::default() };
        }
        let chooses = attempt.gpu_alone || (device.misleads && attempt.setting.is_empty());
        if attempt.dma_buf && chooses && exported(machine) {
            if !attempt.goes_on {
                return Outcome::none(if attempt.gpu_alone { GPU_ALONE } else { MISLED });
            }
            // The program has chosen dma-buf, and falls back without looking for signs.
            looks = false;
        }
        if let (false, Some(way)) = (attempt.dma_buf, served) {
            let sees = seen(machine, attempt);
            if sees.is_some() || !looks || attempt.looks_for.is_empty() {
                let sees = sees.unwrap_or_default();
                return Outcome { way: way.clone(), setting: attempt.setting, sees, ..Outcome::default() };
            }
        }
    }
    Outcome::none(why_none(program, device, served.is_some()))
}

/// Returns why the program cannot use the RDMA device.
fn misfit(program: &Program, device: &Device) -> Option<String> {
    if !program.only.is_empty() && !program.only.contains(&device.driver.as_str()) {
        return Some(format!("it was made for {} alone", program.only.join(" and ")));
    }
    if program.no_efa.is_empty() || device.driver != EFA {
        return None;
    }
    let parts = [program.no_efa, program.instead];
    Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": "))
}

/// Returns why the program finds no way. `is_served` says that a module or driver serves pointers of the pair.
fn why_none(program: &Program, device: &Device, is_served: bool) -> String {
    let mut named = program.tries.iter().filter(|attempt| !attempt.names.is_empty()).peekable();
    if is_served && named.peek().is_some() && !named.any(|attempt| attempt.takes(device)) {
        return BAD_NAME.to_owned();
    }
    if program.tries.iter().all(|attempt| attempt.dma_buf) {
        return "it uses dma-buf alone".to_owned();
    }
    if !is_served {
        let alone = program.tries.iter().all(|attempt| !attempt.dma_buf);
        return if alone { "it uses peer memory alone" } else { "neither of its ways is there" }.to_owned();
    }
    format!("it looks for {}", program.signs().join(" "))
}

/// Returns the signs of peer memory that are there.
fn signs(machine: &Machine) -> IndexSet<&'static str> {
    let wanted: IndexSet<&'static str> = PROGRAMS.iter().flat_map(Program::signs).collect();
    wanted.into_iter().filter(|sign| is_there(machine, sign)).collect()
}

fn is_there(machine: &Machine, sign: &str) -> bool {
    if let Some(names) = sign.strip_suffix(" in /proc/modules") {
        let modules = machine.all_text(&["/proc/modules"]);
        let mut listed = modules.split('\n').filter_map(|line| line.split_once(' ')).map(|(name, _)| name);
        return listed.any(|name| names.split(" or ").any(|wanted| wanted == name));
    }
    if sign.ends_with(" in /proc/kallsyms") {
        return !peer_memory_in(machine).is_empty();
    }
    machine.exists(sign)
}

/// Returns the first sign of peer memory that the program sees.
fn seen(machine: &Machine, attempt: &Try) -> Option<&'static str> {
    let there = machine.once(signs);
    attempt.looks_for.iter().copied().find(|sign| there.contains(sign))
}

/// Returns whether the NVIDIA driver was loaded with the option. A file that cannot be read says nothing, so the option
/// counts as set.
fn option_set(machine: &Machine, option: &str) -> bool {
    if option.is_empty() {
        return true;
    }
    let text = machine.text(DRIVER_PARAMETERS);
    text.is_empty() || text.contains(option)
}

/// Pairs with which all programs take the same ways.
pub struct Group {
    pub pairs: Vec<Pair>,
    pub programs: IndexMap<&'static str, Outcome>,
}

/// Returns the pairs that have some way, in groups with the same outcomes.
pub fn grouped(machine: &Machine) -> Rc<Vec<Group>> {
    machine.once(compute_groups)
}

fn compute_groups(machine: &Machine) -> Vec<Group> {
    let (every, pairs) = (outcomes(machine), ways::of_pairs(machine));
    let mut found: IndexMap<Vec<Outcome>, Group> = IndexMap::new();
    for pair in pairs.iter().filter(|(_, here)| !here.is_empty()).map(|(pair, _)| pair) {
        let of_pair = every.iter().filter_map(|(name, by_pair)| Some((*name, by_pair.get(pair)?.clone())));
        let programs: IndexMap<&'static str, Outcome> = of_pair.collect();
        let key = programs.values().cloned().collect();
        found.entry(key).or_insert_with(|| Group { pairs: Vec::new(), programs }).pairs.push(pair.clone());
    }
    found.into_values().collect()
}

/// Returns the ways that each program takes on this node, the way of the first pair first. The text is empty if the
/// program finds no way with any pair.
pub fn ways_found(machine: &Machine) -> IndexMap<&'static str, String> {
    let general = PROGRAMS.iter().filter(|program| !program.is_for_efa());
    let mut found: IndexMap<&'static str, String> = general.map(|program| (program.name, String::new())).collect();
    for (name, by_pair) in outcomes(machine).iter() {
        let ways: IndexSet<&str> = by_pair.values().map(|one| one.way.as_str()).filter(|way| !way.is_empty()).collect();
        found.insert(name, ways.into_iter().collect::<Vec<_>>().join(", "));
    }
    found
}
