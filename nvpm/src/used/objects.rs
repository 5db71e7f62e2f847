// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads what programs have made at the RDMA devices of this node: open devices (contexts), protection domains, queues
//! and registrations of memory.
//!
//! The kernel names the thread that has made an object. After the end of that thread, the object has no process any
//! more, although the program still runs. The protection domain and the context of a registration then lead to the
//! program.
use std::collections::HashMap;

use crate::read::machine::{Machine, decoded};
use crate::read::rdma_netlink::{attributes, bodies, name_of};
use crate::read::reader::Unread;
use crate::used::tasks::Tasks;

/// The kernel's numbers of attributes (`enum rdma_nldev_attr`).
const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const TABLES: [u16; 4] = [QP, MR, PD, CTX];
const QP: u16 = 19;
const PID: u16 = 28;
const KERN_NAME: u16 = 29;
const MR: u16 = 40;
const MRLEN: u16 = 45;
const PD: u16 = 46;
const DRIVER: u16 = 52;
const DRIVER_ENTRY: u16 = 53;
const DRIVER_STRING: u16 = 54;
const PDN: u16 = 60;
const CTXN: u16 = 64;
const CTX: u16 = 86;

/// The greatest number of bytes of a device's list. A user decides how many registrations there are. Each takes 60 to
/// 100 bytes.
const MOST: u64 = 12 << 20;
/// The greatest number of registrations of all devices together.
const MOST_IN_ALL: usize = 250_000;
/// The length of a registration of the whole address space. A sum of such lengths means nothing.
pub const EVERYTHING: u64 = u64::MAX;

pub struct Device {
    pub number: u32,
    pub name: String,
}

/// Memory that a program has registered with a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The place of the device in the list of devices.
    pub device: usize,
    /// The process; None if it cannot be seen from here, or has ended.
    pub process: Option<u32>,
    pub length: u64,
    /// Whether the device pages the memory on demand, as mlx5 alone says it.
    pub is_paged: bool,
}

/// The objects of all devices.
#[derive(Default)]
pub struct Objects {
    pub devices: Vec<Device>,
    pub registrations: Vec<Registration>,
    /// Each process that has a device open, with the place of the device.
    pub opened: Vec<(u32, usize)>,
    /// The devices whose lists were too long, or could not be read.
    pub cut: Vec<String>,
}

/// An object as the kernel describes it.
#[derive(Default)]
struct Object {
    task: Option<u32>,
    is_kernels: bool,
    length: Option<u64>,
    domain: Option<u32>,
    context: Option<u32>,
    is_paged: bool,
}

impl Object {
    fn new(data: &[u8]) -> Self {
        let mut found = Self::default();
        for (kind, value) in attributes(data) {
            match kind {
                PID => found.task = number(value),
                KERN_NAME => found.is_kernels = true,
                MRLEN => found.length = value.first_chunk().copied().map(u64::from_ne_bytes),
                PDN => found.domain = number(value),
                CTXN => found.context = number(value),
                DRIVER => found.is_paged = strings(value).any(|text| text == b"odp"),
                _ => {}
            }
        }
        found
    }
}

fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// Returns the texts of a driver. Each may lie in an entry of its own.
fn strings(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let plain = attributes(value).filter(|(kind, _)| *kind == DRIVER_STRING).map(|(_, text)| text);
    let entries = attributes(value).filter(|(kind, _)| *kind == DRIVER_ENTRY);
    let inner = entries.flat_map(|(_, entry)| attributes(entry).map(|(_, text)| text));
    plain.chain(inner).map(|text| text.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Returns the objects in a list's messages. Each message has a table of objects.
fn objects(data: &[u8]) -> impl Iterator<Item = Object> {
    let tables = bodies(data).flat_map(attributes).filter(|(kind, _)| TABLES.contains(kind));
    tables.flat_map(|(_, table)| attributes(table)).map(|(_, object)| Object::new(object))
}

fn devices(data: &[u8]) -> Vec<Device> {
    let device = |body| {
        let mut found = (None, None);
        for (kind, value) in attributes(body) {
            match kind {
                DEV_INDEX => found.0 = number(value),
                DEV_NAME => found.1 = value.split(|byte| *byte == 0).next().map(decoded),
                _ => {}
            }
        }
        Some(Device { number: found.0?, name: found.1? })
    };
    bodies(data).filter_map(device).collect()
}

/// Returns the objects of all devices, or why the RDMA core does not list its devices.
pub fn read(machine: &Machine, tasks: &mut Tasks) -> Result<Objects, Unread> {
    let mut found =
        Objects { devices: devices(&machine.contents(&name_of("dev", None), Some(MOST))?), ..Default::default() };
    for place in 0..found.devices.len() {
        of_device(machine, tasks, place, &mut found);
    }
    // The reading process keeps the memory of the longest list.
    machine.reader.stop();
    found.cut.dedup();
    found.opened.sort_unstable();
    found.opened.dedup();
    Ok(found)
}

/// Adds a device's objects.
fn of_device(machine: &Machine, tasks: &mut Tasks, place: usize, found: &mut Objects) {
    let Some((index, name)) = found.devices.get(place).map(|one| (one.number, one.name.clone())) else { return };
    // Older kernels do not list contexts.
    let list = |kind: &str| machine.contents(&name_of(kind, Some(index)), Some(MOST));
    let whole = list("mr");
    if whole.as_ref().map_or(true, |data| data.len() as u64 >= MOST) {
        found.cut.push(name);
    }
    let registered = whole.unwrap_or_default();
    let mut owners = Owners::default();
    owners.add_contexts(machine, tasks, &list("ctx").unwrap_or_default());
    owners.add_domains(machine, tasks, &list("pd").unwrap_or_default());
    owners.add(machine, tasks, &registered);
    // The kernel may ask the device's firmware about each queue, so queues are listed only if nothing else helps.
    if objects(&registered).any(|one| !one.is_kernels && owners.of(machine, tasks, &one).is_none()) {
        owners.add(machine, tasks, &list("qp").unwrap_or_default());
    }
    for one in objects(&registered).filter(|one| !one.is_kernels) {
        if found.registrations.len() >= MOST_IN_ALL {
            found.cut.extend(found.devices.get(place).map(|device| device.name.clone()));
            break;
        }
        let process = owners.of(machine, tasks, &one);
        let length = one.length.unwrap_or_default();
        // Lengths beyond the address space occur only if a program registers all of it, which needs paging.
        let is_paged = one.is_paged || length == EVERYTHING;
        found.registrations.push(Registration { device: place, process, length, is_paged });
    }
    found.opened.extend(owners.contexts.values().chain(owners.domains.values()).map(|process| (*process, place)));
}

/// The processes to which the protection domains and the contexts of a device belong.
#[derive(Default)]
struct Owners {
    contexts: HashMap<u32, u32>,
    domains: HashMap<u32, u32>,
    /// The context of each protection domain.
    context_of: HashMap<u32, u32>,
}

impl Owners {
    fn add_contexts(&mut self, machine: &Machine, tasks: &mut Tasks, data: &[u8]) {
        for one in objects(data) {
            if let (Some(context), Some(process)) = (one.context, tasks.process_of(machine, one.task)) {
                self.contexts.insert(context, process);
            }
        }
    }

    fn add_domains(&mut self, machine: &Machine, tasks: &mut Tasks, data: &[u8]) {
        for one in objects(data).filter(|one| !one.is_kernels) {
            let Some(domain) = one.domain else { continue };
            if let Some(context) = one.context {
                self.context_of.insert(domain, context);
            }
            self.belongs(domain, tasks.process_of(machine, one.task));
        }
    }

    /// Adds what queues or registrations say of their protection domains.
    fn add(&mut self, machine: &Machine, tasks: &mut Tasks, data: &[u8]) {
        for one in objects(data).filter(|one| !one.is_kernels) {
            if let Some(domain) = one.domain {
                self.belongs(domain, tasks.process_of(machine, one.task));
            }
        }
    }

    fn belongs(&mut self, domain: u32, process: Option<u32>) {
        let Some(process) = process else { return };
        self.domains.entry(domain).or_insert(process);
        if let Some(context) = self.context_of.get(&domain) {
            self.contexts.entry(*context).or_insert(process);
        }
    }

    fn of(&self, machine: &Machine, tasks: &mut Tasks, one: &Object) -> Option<u32> {
        let by_context = |domain| self.contexts.get(self.context_of.get(domain)?);
        let by_domain =
            || one.domain.as_ref().and_then(|domain| self.domains.get(domain).or_else(|| by_context(domain)));
        tasks.process_of(machine, one.task).or_else(|| by_domain().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    fn read_of(made: &Made) -> Objects {
        let machine = made.read();
        read(&machine, &mut Tasks::default()).unwrap()
    }

    /// Returns the length and the process of each registration.
    fn found(made: &Made) -> Vec<(u64, Option<u32>)> {
        read_of(made).registrations.iter().map(|one| (one.length, one.process)).collect()
    }

    fn of_process(number: u32, task: u32) -> String {
        format!("/proc/{task}/status = Name:\\ta\\nTgid:\\t{number}\\nPid:\\t{task}")
    }

    #[test]
    fn the_numbers_are_those_of_the_header() {
        let names = [
            ("DEV_INDEX", DEV_INDEX),
            ("DEV_NAME", DEV_NAME),
            ("RES_QP", QP),
            ("RES_PID", PID),
            ("RES_KERN_NAME", KERN_NAME),
            ("RES_MR", MR),
            ("RES_MRLEN", MRLEN),
            ("RES_PD", PD),
            ("DRIVER", DRIVER),
            ("DRIVER_ENTRY", DRIVER_ENTRY),
            ("DRIVER_STRING", DRIVER_STRING),
            ("RES_PDN", PDN),
            ("RES_CTXN", CTXN),
            ("RES_CTX", CTX),
        ];
        let line =
            |(name, number): (&str, u16)| format!("_Static_assert(RDMA_NLDEV_ATTR_{name} == {number}, \"{name}\");\n");
        let checks: Vec<String> = names.into_iter().map(line).collect();
        crate::read::rdma_netlink::assert_header(&checks.concat());
    }

    #[test]
    fn a_thread_leads_to_its_process() {
        let made = Made::new();
        made.change(["rdma dev 0 name mlx5_0", "rdma mr 0 mrlen 4096 pdn 7 pid 282", &of_process(275, 282)]);
        assert_eq!(found(&made), [(4096, Some(275))]);
    }

    #[test]
    fn after_the_end_of_a_thread_other_objects_lead_to_the_process() {
        let made = Made::new();
        made.change(["rdma dev 0 name mlx5_0", "rdma dev 1 name mlx5_1", &of_process(296, 296)]);
        made.change(["rdma mr 0 mrlen 1 pdn 21", "rdma pd 0 pdn 21 ctxn 18", "rdma ctx 0 ctxn 18 pid 296"]);
        // Each device numbers its own objects.
        made.change(["rdma mr 1 mrlen 2 pdn 21", "rdma qp 1 lqpn 5 pdn 21"]);
        assert_eq!(found(&made), [(1, Some(296)), (2, None)]);
        made.change(["rdma qp 1 lqpn 6 pdn 21 pid 296"]);
        assert_eq!(found(&made), [(1, Some(296)), (2, Some(296))]);
    }

    #[test]
    fn a_registration_leads_to_the_others_of_its_domain_and_context() {
        let made = Made::new();
        made.change(["rdma dev 0 name mlx5_0", &of_process(5, 5)]);
        made.change(["rdma pd 0 pdn 1 ctxn 9", "rdma pd 0 pdn 2 ctxn 9", "rdma pd 0 pdn 3 ctxn 8"]);
        made.change(["rdma mr 0 mrlen 1 pdn 1", "rdma mr 0 mrlen 2 pdn 2 pid 5", "rdma mr 0 mrlen 3 pdn 3"]);
        assert_eq!(found(&made), [(1, Some(5)), (2, Some(5)), (3, None)]);
        assert_eq!(read_of(&made).opened, [(5, 0)]);
    }

    #[test]
    fn objects_of_the_kernel_are_left_out() {
        let made = Made::new();
        made.change([
            "rdma dev 0 name mlx5_0",
            "rdma mr 0 mrlen 4096 comm [ib_core]",
            "rdma pd 0 pdn 0 comm [mlx5_ib]",
        ]);
        assert_eq!(found(&made), []);
    }

    #[test]
    fn paging_is_seen() {
        let made = Made::new();
        made.change(["rdma dev 3 name mlx5_0", "rdma mr 3 mrlen 10 odp explicit", "rdma mr 3 mrlen 11"]);
        made.change(["rdma mr 3 mrlen 18446744073709551615"]);
        let found: Vec<bool> = read_of(&made).registrations.iter().map(|one| one.is_paged).collect();
        assert_eq!(found, [true, false, true]);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_named() {
        let made = Made::new();
        assert!(read(&made.read(), &mut Tasks::default()).is_err());
        made.change(["rdma dev 0 name mlx5_0", "rdma dev 1 name mlx5_1"]);
        assert!(read_of(&made).cut.is_empty());
        made.change(["- /rdma-netlink/mr/1"]);
        assert_eq!(read_of(&made).cut, ["mlx5_1"]);
    }
}
