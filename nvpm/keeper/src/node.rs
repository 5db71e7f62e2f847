// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads what a pod sees of its node: the loaded modules, and the directories of the two operators' containers.
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::checksum::checksum;

/// The GPU Operator's driver container shows its root directory here. While the container runs, the file with its
/// process number exists.
pub const DRIVER: &str = "/run/nvidia/driver";
pub const DRIVER_PID: &str = "/run/nvidia/nvidia-driver.pid";
/// The container writes this file after it has loaded the driver, and the file stays until the node boots.
const DRIVER_STATE: &str = "/run/nvidia/nvidia-driver.state";
/// The directory and the file of the GPU Operator that say that the container is ready.
const VALIDATIONS: &str = "/run/nvidia/validations";
pub const DRIVER_READY: &str = "/run/nvidia/validations/.driver-ctr-ready";
/// The Network Operator's OFED container shows its sources here. The container locks the first file when it first
/// starts, and the file stays. The second file exists while the OFED is ready.
pub const OFED: &str = "/run/mellanox/drivers";
const OFED_LOCK: &str = "/run/mellanox/drivers/.lock";
pub const OFED_READY: &str = "/run/mellanox/drivers/.driver-ready";
/// The node's own directories.
pub const HOST: &str = "/host";

pub const OWN_NAMES: [&str; 2] = ["nvidia_peermem", "nv_peer_mem"];
const CORE: [&str; 2] = ["ib_core", "ib_uverbs"];
const REGISTER: &str = "ib_register_peer_memory_client";

/// A loaded module. `identity` differs between two builds of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub name: String,
    pub identity: String,
    pub version: String,
    pub references: u64,
    pub live: bool,
}

/// The node, below the directory `root`, which is empty but in tests.
pub struct Node {
    pub root: String,
    /// The module with which clients register, and the RDMA core for which this is known.
    exporter: RefCell<(Vec<String>, String)>,
}

impl Node {
    pub fn new(root: &str) -> Self {
        Self { root: root.to_owned(), exporter: RefCell::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("{}{name}", self.root))
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Returns the text of a file; an empty string if the file cannot be read.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.data(name)).trim().to_owned()
    }

    fn data(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_default()
    }

    pub fn kernel(&self) -> String {
        self.text("/proc/sys/kernel/osrelease")
    }

    /// Returns a text that differs between two builds of a kernel's release.
    pub fn kernel_build(&self) -> String {
        checksum(&self.data("/sys/kernel/notes"))
    }

    /// Returns a loaded module; None if the module is not loaded, or is built into the kernel.
    pub fn module(&self, name: &str) -> Option<Loaded> {
        let state = self.text(&format!("/sys/module/{name}/initstate"));
        (!state.is_empty()).then(|| Loaded {
            name: name.to_owned(),
            identity: self.identity(name),
            version: self.text(&format!("/sys/module/{name}/version")),
            references: self.text(&format!("/sys/module/{name}/refcnt")).parse().unwrap_or_default(),
            live: state == "live",
        })
    }

    /// Returns a text that differs between builds of a module. The linker's build ID differs always, but some modules
    /// have none. The checksum of the sources and the version are then known for most modules, and the size for
    /// all.
    pub fn identity(&self, name: &str) -> String {
        let files = ["notes/.note.gnu.build-id", "srcversion", "version", "coresize"];
        checksum(&files.map(|file| self.data(&format!("/sys/module/{name}/{file}"))).join(&0))
    }

    /// Returns the loaded module of this project, under either name. NVIDIA's module and the marker, which have the
    /// first name, too, have no statistics.
    pub fn own(&self) -> Option<Loaded> {
        let name = OWN_NAMES.into_iter().find(|name| self.exists(&format!("/sys/module/{name}/statistics")))?;
        self.module(name)
    }

    /// Returns NVIDIA's own `nvidia_peermem`, if that module is loaded.
    pub fn others(&self) -> Option<Loaded> {
        if self.own().is_some() || self.exists("/sys/module/nv_peer_mem") {
            return None;
        }
        self.module("nvidia_peermem")
    }

    /// Returns the modules of the RDMA core that are loaded.
    pub fn core(&self) -> Vec<Loaded> {
        CORE.into_iter().filter_map(|name| self.module(name)).collect()
    }

    /// Returns whether all modules of the RDMA core are loaded and have started.
    pub fn has_core(&self) -> bool {
        let found = self.core();
        found.len() == CORE.len() && found.iter().all(|module| module.live)
    }

    /// Returns the module of the RDMA core with which clients register; an empty string if no loaded module takes
    /// clients. The kernel's list of functions is long, so the list is read only if the core has changed.
    pub fn peer_memory_in(&self) -> String {
        let core: Vec<String> = self.core().into_iter().map(|module| module.identity).collect();
        let mut known = self.exporter.borrow_mut();
        if known.0 != core {
            let symbols = self.text("/proc/kallsyms");
            *known = (core, symbols.lines().find_map(exporter).unwrap_or_default().to_owned());
        }
        known.1.clone()
    }

    /// Returns whether the module NAME is a client of the RDMA core that runs. Loading the module fails if the core
    /// refuses the client, and the client ends with the module.
    pub fn registered(&self, name: &str) -> bool {
        let is_live = self.module(name).is_some_and(|module| module.live);
        let holds = CORE.iter().any(|core| self.exists(&format!("/sys/module/{core}/holders/{name}")));
        let peers = "/sys/kernel/mm/memory_peers";
        is_live && holds && (!self.exists(peers) || self.exists(&format!("{peers}/nv_mem")))
    }

    /// Returns whether NVIDIA's driver is that of the GPU Operator's container. The directory alone says nothing,
    /// because the container toolkit also makes it.
    fn driver_contained(&self) -> bool {
        self.exists(DRIVER_PID) || self.exists(&format!("{DRIVER}/usr"))
    }

    /// Returns whether the driver's container is ending or starting. Its hook removes the file at the stop, and the
    /// file returns a minute after the start. Early operators have no such file, and no directory for it.
    pub fn driver_leaves(&self) -> bool {
        self.driver_contained() && self.exists(VALIDATIONS) && !self.exists(DRIVER_READY)
    }

    /// Returns whether a container has loaded the driver, and `nvidia_uvm` is missing. The container may have ended. A
    /// node's own driver loads `nvidia_uvm` when a program uses CUDA.
    pub fn lacks_uvm(&self) -> bool {
        (self.driver_contained() || self.exists(DRIVER_STATE)) && !self.exists("/sys/module/nvidia_uvm")
    }

    pub fn ofed_contained(&self) -> bool {
        self.exists(OFED_LOCK) || self.exists(OFED_READY) || self.exists(&format!("{OFED}/usr/src"))
    }

    /// Returns whether the OFED container is ending or starting.
    pub fn ofed_leaves(&self) -> bool {
        self.ofed_contained() && !self.exists(OFED_READY)
    }

    /// Returns when the files of both containers were written, in seconds and nanoseconds; None for a file that is
    /// missing.
    pub fn became_ready(&self) -> [Option<(i64, i64)>; 2] {
        let written = |name| fs::metadata(self.path(name)).ok().map(|about| (about.mtime(), about.mtime_nsec()));
        [DRIVER_READY, OFED_READY].map(written)
    }
}

/// Returns the module in a line of the kernel's list of functions, if the line is about the function for clients.
fn exporter(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip(2);
    words.next().filter(|name| *name == REGISTER)?;
    words.next()?.strip_prefix('[')?.strip_suffix(']')
}
