// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The versions of programs and modules.
use crate::read::areas::NVIDIA_DRIVER;
use crate::read::machine::{Machine, PEERMEM, decoded, loaded_version, modinfo, own_module};
use crate::read::ways;
use crate::show::release::release;

const MODULES: [&str; 12] = [
    "nv_peer_mem",
    "nv_peer_mem_callback",
    "nvidia",
    "nvidia_peermem",
    "ib_core",
    "ib_uverbs",
    "mlx5_core",
    "mlx5_ib",
    "irdma",
    "bnxt_re",
    "efa",
    "mana_ib",
];
const FIELDS: [&str; 7] = ["filename", "description", "version", "vermagic", "rust", "srcversion", "signer"];

const NVIDIA_SMI: &str = "nvidia-smi";
pub const HANGS: &str = "not run, because the NVIDIA driver does not answer: see status.txt";
const PROGRAMS: [&[&str]; 6] = [
    // With these options, uname does not print the name of the host.
    &["uname", "-srvm"],
    &["ofed_info", "-s"],
    &["dkms", "status"],
    &[NVIDIA_SMI, "--query-gpu=index,name,pci.bus_id,driver_version,vbios_version", "--format=csv"],
    &[NVIDIA_SMI, "topo", "-m"],
    &["lspci", "-tnn"],
];

pub fn is_driver_silent(machine: &Machine) -> bool {
    machine.reader.silences().iter().any(|silence| silence.area == NVIDIA_DRIVER)
}

pub fn versions(machine: &Machine) -> String {
    let mut said = vec!["# this program".to_owned(), format!("nvpm {}", release()), String::new()];
    for command in PROGRAMS {
        let output = if command.first() == Some(&NVIDIA_SMI) && is_driver_silent(machine) {
            format!("({HANGS})")
        } else {
            output(machine, command)
        };
        said.extend([format!("# {}", command.join(" ")), output, String::new()]);
    }
    for module in MODULES {
        let fields = modinfo(machine, module);
        let known = FIELDS.iter().filter_map(|name| Some((name, fields.get(*name).filter(|value| !value.is_empty())?)));
        let mut known: Vec<String> = known.map(|(name, value)| format!("{name}: {value}")).collect();
        if known.is_empty() {
            known.push("(not installed)".to_owned());
        }
        said.push(format!("# module {module}, {}", loaded(machine, module)));
        said.extend(known);
        said.push(String::new());
    }
    said.join("\n")
}

/// Returns the output of a program, or the reason for its absence.
fn output(machine: &Machine, command: &[&str]) -> String {
    let ended = machine.ended(command);
    if ended.code == Some(0) {
        return decoded(&ended.output).trim_matches('\n').to_owned();
    }
    let code = ended.code.map_or_else(|| "None".to_owned(), |code| code.to_string());
    if ended.why.is_empty() { format!("(it failed: exit code {code})") } else { format!("({})", ended.why) }
}

/// Returns whether the module is loaded. Three modules have the name `nvidia_peermem`, so the text also says which of
/// them is loaded.
fn loaded(machine: &Machine, module: &str) -> String {
    if !machine.loaded(module) {
        return "not loaded".to_owned();
    }
    if module != PEERMEM {
        return "loaded".to_owned();
    }
    if own_module(machine) == PEERMEM {
        return format!("loaded: this is nv_peer_mem {}", loaded_version(machine, PEERMEM));
    }
    let whose = if ways::peermem_loaded(machine) { "NVIDIA's" } else { "nv_peer_mem's marker" };
    format!("loaded: {whose}")
}
