// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads facts about registered GPU memory: the module's list, the counters of the clients of peer memory, and the
//! dma-bufs that devices have attached.
use std::collections::{BTreeMap, HashMap};

use crate::read::machine::{Machine, PEERS, base, decoded, own_module};
use crate::read::regions::{TO_LIST, left_out, regions};
use crate::text::clean;

pub const BUFFERS: &str = "/sys/kernel/debug/dma_buf/bufinfo";
/// The greatest number of bytes of the list of dma-bufs. A user decides how many there are.
const MOST: u64 = 8 << 20;
/// GPU drivers export dma-bufs under names with these beginnings.
const OF_GPUS: [&str; 6] = ["nv", "amdgpu", "amdkfd", "xe", "i915", "habana"];
/// The names under which the kernel exports host memory.
const OF_HOSTS: [&str; 3] = ["udmabuf", "system", "reserved"];

/// A registration in the module's list: the process, the PCI address of the device, and the length.
pub type Listed = (u64, String, u64);

/// The module's list of registrations.
pub struct List {
    pub count: HashMap<Listed, u64>,
    pub bytes: u64,
    /// Whether the list was too long to be read to its end.
    pub is_cut: bool,
}

/// Returns the module's list; None without the module, or if this user cannot read the list.
pub fn list(machine: &Machine) -> Option<List> {
    let found = regions(machine, TO_LIST).ok()?;
    let is_cut = !left_out(machine, &found).is_empty();
    let (mut count, mut bytes) = (HashMap::new(), 0_u64);
    // An orphan is a registration that has ended. No device lists orphans.
    for one in found.into_iter().filter(|one| one.state != "orphaned") {
        let length = u64::try_from(one.length).unwrap_or(u64::MAX);
        bytes = bytes.saturating_add(length);
        *count.entry((one.process, one.pci, length)).or_default() += 1;
    }
    Some(List { count, bytes, is_cut })
}

/// The memory that clients of peer memory have registered now, on the whole node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    pub bytes: u64,
    pub registrations: u64,
    /// Whether the counters of some client are not known, or make no sense at this moment.
    pub is_unsure: bool,
    /// Whether all clients are those of the module `nv_peer_mem`.
    pub are_ours: bool,
}

/// Returns the sum of all clients; None if the RDMA core has no peer memory.
pub fn peers(machine: &Machine) -> Option<Peers> {
    if !machine.exists(PEERS) {
        return None;
    }
    let clients = machine.glob(&[&format!("{PEERS}/*")]);
    let is_ours = |client: &&String| base(client).starts_with("nv_mem");
    let mut found = Peers {
        are_ours: !own_module(machine).is_empty() && clients.iter().all(|client| is_ours(&client)),
        ..Peers::default()
    };
    for client in clients {
        let left = |made: &str, ended: &str| {
            let number = |name: &str| machine.text(&format!("{client}/{name}")).parse::<u64>().ok();
            number(made)?.checked_sub(number(ended)?)
        };
        let bytes = left("num_reg_bytes", "num_dereg_bytes");
        let registrations = left("num_alloc_mrs", "num_dealloc_mrs");
        found.is_unsure |= bytes.is_none() || registrations.is_none();
        found.bytes = found.bytes.saturating_add(bytes.unwrap_or_default());
        found.registrations = found.registrations.saturating_add(registrations.unwrap_or_default());
    }
    Some(found)
}

/// Whose memory a dma-buf contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    Gpu,
    Host,
    Unknown,
}

pub fn exporter(name: &str) -> Exporter {
    if OF_GPUS.iter().any(|begin| name.starts_with(begin)) {
        Exporter::Gpu
    } else if OF_HOSTS.contains(&name) {
        Exporter::Host
    } else {
        Exporter::Unknown
    }
}

/// The dma-bufs that each device has attached.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// The number of attachments, by the device's name in the kernel, the size and the exporter.
    pub attached: HashMap<String, BTreeMap<(u64, String), u64>>,
    /// Whether the list was too long to be read to its end.
    pub is_cut: bool,
}

/// Returns the dma-bufs; None if the kernel does not list them, or if this user cannot read the list.
pub fn buffers(machine: &Machine) -> Option<Buffers> {
    let data = machine.read_at_most(BUFFERS, MOST);
    let text = decoded(&data);
    let mut found = parsed(&text)?;
    found.is_cut = data.len() as u64 >= MOST;
    Some(found)
}

/// Reads the kernel's list. Each dma-buf has a line with its size, and then a line for each device that has attached
/// the dma-buf. The last word of the first line is a name that a user chooses, and may contain line breaks. The name
/// has at most 31 bytes. Neither a first line nor a list of devices has room there.
fn parsed(text: &str) -> Option<Buffers> {
    if !text.starts_with("\nDma-buf Objects:") && !text.starts_with("Dma-buf Objects:") {
        return None;
    }
    let mut found = Buffers::default();
    let (mut buffer, mut is_in_list) = (None, false);
    for line in text.lines() {
        if let Some(first) = first_line(line) {
            (buffer, is_in_list) = (Some(first), false);
        } else if line.trim() == "Attached Devices:" {
            is_in_list = true;
        } else if line.starts_with("Total ") {
            (buffer, is_in_list) = (None, false);
        } else if let Some((first, device)) = buffer.as_ref().zip(line.strip_prefix('\t')).filter(|_| is_in_list) {
            let of_device = found.attached.entry(clean(device.trim())).or_default();
            *of_device.entry(first.clone()).or_default() += 1;
        }
    }
    Some(found)
}

/// Returns the size and the exporter in the first line of a dma-buf.
fn first_line(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_whitespace();
    let size = words.next().filter(|word| word.len() >= 8)?.parse().ok()?;
    let is_number = |word: &&str| word.len() >= 8 && word.bytes().all(|letter| letter.is_ascii_hexdigit());
    let numbers = words.by_ref().take(3).filter(is_number).count();
    Some((size, clean(words.next().filter(|_| numbers == 3)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Made;

    /// The output of Linux 6.12 (drivers/dma-buf/dma-buf.c).
    const LIST: &str = "\nDma-buf Objects:\nsize    \tflags   \tmode    \tcount   \texp_name\tino     \tname\n\
        06291456\t00000002\t00080007\t00000002\tnv_dmabuf\t00000531\t<none>\n\
        \twrite fence:mlx5 seq 7 signalled\n\tAttached Devices:\n\t0000:04:00.0\n\t0000:04:00.0\n\
        Total 2 devices attached\n\n\
        00004096\t00000002\t00080007\t00000001\tudmabuf\t00000532\tx\n\t0000:04:00.0\n\n\
        \tAttached Devices:\n\t0000:05:00.0\nTotal 1 devices attached\n\n\nTotal 2 objects, 6295552 bytes\n";

    #[test]
    fn attached_buffers_are_counted() {
        let found = parsed(LIST).unwrap();
        let of = |device: &str| found.attached.get(device).cloned().unwrap_or_default().into_iter().collect::<Vec<_>>();
        assert_eq!(of("0000:04:00.0"), [((6291456, "nv_dmabuf".to_owned()), 2)]);
        assert_eq!(of("0000:05:00.0"), [((4096, "udmabuf".to_owned()), 1)]);
        assert_eq!(found.attached.len(), 2);
        assert_eq!(parsed(""), None);
    }

    #[test]
    fn a_name_adds_no_buffer() {
        // The longest names that look like a first line and like a device.
        for name in ["\n00004096\t00000002\t00080007\t000", "\n\tAttached Devices:\n\t0000:04:00"] {
            assert_eq!(name.len(), 31);
            let list = format!("Dma-buf Objects:\n00004096\t00000002\t00080007\t00000001\tudmabuf\t00000532\t{name}\n");
            let found = parsed(&list).unwrap();
            assert!(found.attached.keys().all(|device| device != "0000:04:00.0"), "{found:?}");
        }
    }

    #[test]
    fn exporters_have_their_memory() {
        let found = ["nv_dmabuf", "nvidia", "amdgpu", "udmabuf", "system", "vgem"].map(exporter);
        let [gpu, host] = [Exporter::Gpu, Exporter::Host];
        assert_eq!(found, [gpu, gpu, gpu, host, host, Exporter::Unknown]);
    }

    #[test]
    fn counters_of_all_clients_are_added() {
        let made = Made::new();
        let client = |name: &str, numbers: [u64; 4]| {
            ["num_reg_bytes", "num_dereg_bytes", "num_alloc_mrs", "num_dealloc_mrs"]
                .iter()
                .zip(numbers)
                .map(|(file, number)| format!("{PEERS}/{name}/{file} = {number}"))
                .collect::<Vec<_>>()
        };
        for name in ["nv_mem", "nv_mem_revocable", "nv_mem_fixed"] {
            made.change(client(name, [10, 3, 5, 3]));
        }
        let found = peers(&made.read()).unwrap();
        assert_eq!(found, Peers { bytes: 21, registrations: 6, is_unsure: false, are_ours: true });
        made.change(client("other", [10, 11, 5, 3]));
        let found = peers(&made.read()).unwrap();
        assert!(found.is_unsure && !found.are_ours);
        made.change(["- /sys/kernel/mm/memory_peers"]);
        assert_eq!(peers(&made.read()), None);
    }
}
