// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Judges whether users other than root may use RDMA. These users need rights to the device files. They also need a
//! large limit of locked memory, because registered GPU memory counts as locked.
use crate::facts::fact::{Fact, Facts, bad, good, info, warn};
use crate::facts::limits::{each_device, is_near, limit_of, locked_memory, number_of};
use crate::facts::memory_lock;
use crate::read::engine::engine;
use crate::read::machine::{Machine, base, statistics};
use crate::read::{dma_buf, regions};

const OPEN: u32 = 0o666;
const LOAD_UVERBS: &str = "modprobe ib_uverbs";
const OPEN_FILES: &str = "Install the udev rules of rdma-core, which give 0666; until the next boot: chmod 0666 \
                          /dev/infiniband/uverbs* /dev/infiniband/rdma_cm";
const RAISE_OWN: &str = "Write '* - memlock unlimited' into /etc/security/limits.d/rdma.conf and log in again; in a \
                         service LimitMEMLOCK=infinity, in docker --ulimit memlock=-1.";
const MORE_MAPPINGS: &str = "At that number ibv_reg_mr and ibv_create_qp fail with ENOMEM. A program with \
                             ibv_fork_init() splits a mapping with each registration: sysctl vm.max_map_count=1048576, \
                             or run it without fork support (RDMAV_FORK_SAFE and IBV_FORK_SAFE unset).";
/// Programs with many connections and dma-bufs have some thousands of open files.
const ENOUGH_FILES: u128 = 4096;
const MORE_FILES: &str = "At that number an export fails with CUDA_ERROR_OPERATING_SYSTEM or Too many open files. ulimit \
                          -n 1048576, or '* - nofile 1048576' in /etc/security/limits.d/rdma.conf; in a service \
                          LimitNOFILE=1048576, in docker --ulimit nofile=1048576.";
/// The number of processes that are judged. A node may have thousands of processes with registrations, but the first of
/// them show what kind of process they are.
const MOST_PROCESSES: usize = 16;
const SESSION: &str = "/proc/self";

pub fn facts(machine: &Machine, facts: &mut Facts) {
    if !machine.glob(&["/sys/class/infiniband/*"]).is_empty() {
        facts.add(device_files(machine));
    }
    memory_lock::facts(machine, facts);
    facts.add(own_memory_lock(machine));
    facts.add(open_files(machine));
    holders(machine, facts);
}

fn device_files(machine: &Machine) -> Fact {
    let name = "/dev/infiniband";
    let mut files = machine.glob(&["/dev/infiniband/uverbs*"]);
    if files.is_empty() {
        return no_device_files(machine, name);
    }
    files.extend(machine.glob(&["/dev/infiniband/rdma_cm"]));
    let closed = |file: &String| {
        let mode = machine.mode(file).filter(|mode| mode & OPEN != OPEN)?;
        Some(format!("{} has mode 0{mode:o}", base(file)))
    };
    let closed = files.iter().filter_map(closed).collect::<Vec<_>>().join(", ");
    if closed.is_empty() {
        return good("access", name, "open to all users");
    }
    warn("access", name, format!("not open to all users: {closed}")).advised(OPEN_FILES)
}

/// Returns the defect of a process that sees RDMA devices and has no files of them. The node around a container has the
/// module that makes the files.
fn no_device_files(machine: &Machine, name: &str) -> Fact {
    let value = "there is no uverbs device";
    let Some(engine) = engine(machine) else { return bad("access", name, value).advised(LOAD_UVERBS) };
    let advice = format!(
        "{} gives the container the node's RDMA devices. If the node has no uverbs device either: modprobe \
         ib_uverbs there.",
        engine.to_give_devices()
    );
    bad("access", name, format!("{value} in this container")).advised(advice)
}

/// Judges the limit of locked memory of this session, because programs that are started in this session inherit the
/// limit.
fn own_memory_lock(machine: &Machine) -> Option<Fact> {
    let (name, limit) = ("memory lock here", locked_memory(machine, SESSION));
    if limit == "unlimited" {
        return Some(good("access", name, "unlimited, for programs of this session"));
    }
    let amount = regions::size(number_of(&limit)?);
    let value = format!("{amount} for each process of this session{}", each_device(machine, &limit));
    let advice = engine(machine).map_or(RAISE_OWN.to_owned(), |engine| format!("{}.", engine.to_lock_memory()));
    Some(warn("access", name, value).advised(advice))
}

/// Returns the limit on open files of this session if dma-buf is a way here. Each exported dma-buf is an open file,
/// which some programs keep open.
fn open_files(machine: &Machine) -> Option<Fact> {
    let limit = number_of(&limit_of(machine, SESSION, "open files"))?;
    if limit >= ENOUGH_FILES || dma_buf::taken_by(machine).is_empty() {
        return None;
    }
    let value = format!("{limit} for each process of this session, and each exported dma-buf is one");
    Some(info("access", "open files", value).advised(MORE_FILES))
}

/// Judges whether the processes that have GPU memory registered are near a limit at which the kernel answers ENOMEM.
/// The limits concern locked memory, open files and the number of mappings.
fn holders(machine: &Machine, facts: &mut Facts) {
    let registered = machine.text(&format!("{}reachable_regions", statistics(machine)));
    if registered.is_empty() || registered == "0" {
        return;
    }
    let judged = regions::judged(machine);
    let Ok(found) = judged.as_ref() else { return };
    let most = machine.text("/proc/sys/vm/max_map_count");
    for process in regions::largest(machine, found).iter().take(MOST_PROCESSES) {
        let (number, place) = (process.number, format!("/proc/{}", process.number));
        let limit = locked_memory(machine, &place);
        if let Some(allowed) = number_of(&limit).filter(|_| is_near(process.bytes, &limit)) {
            let value =
                format!("has registered {}, and may lock {}", regions::size(process.bytes), regions::size(allowed));
            facts.add(warn("access", &format!("process {number}"), value).advised(RAISE_OWN));
        }
        let (files, open) = (limit_of(machine, &place, "open files"), machine.glob(&[&format!("{place}/fd/*")]).len());
        if is_near(open as u128, &files) {
            let value = format!("has {open} open files, and may have {files}");
            facts.add(warn("access", &format!("open files of process {number}"), value).advised(MORE_FILES));
        }
        facts.add(mappings(machine, &most, number, &place));
    }
}

/// Returns a fact if a process has nearly as many mappings as it may have.
fn mappings(machine: &Machine, most: &str, number: u64, place: &str) -> Option<Fact> {
    number_of(most)?;
    let count = memchr::memchr_iter(b'\n', &machine.read(&format!("{place}/maps"))).count();
    if !is_near(count as u128, most) {
        return None;
    }
    let value = format!("has {count} mappings, and may have {most} (vm.max_map_count)");
    Some(warn("access", &format!("mappings of process {number}"), value).advised(MORE_MAPPINGS))
}
