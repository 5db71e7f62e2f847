// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A node that is made of files, as a pod of the image sees it, for tests.
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::node::{DRIVER, DRIVER_PID, DRIVER_READY, Node, OFED, OFED_READY};

pub const KERNEL: &str = "6.8.0-60-generic";

/// An empty directory, which is removed in the end.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nvpm-keeper-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A node with a kernel and nothing else, to which a test adds files.
pub struct Files {
    node: Node,
    _directory: Directory,
}

impl Deref for Files {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}

impl Files {
    pub fn new() -> Self {
        let directory = Directory::new();
        let node = Node::new(directory.to_str().unwrap());
        let files = Self { node, _directory: directory };
        files.put("/proc/sys/kernel/osrelease", &format!("{KERNEL}\n"));
        files
    }

    /// A node with the driver and an RDMA core that has peer memory.
    pub fn ready() -> Self {
        let node = Self::new();
        node.load("nvidia");
        node.load_core("1", "ib_core");
        node
    }

    pub fn put(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    pub fn remove(&self, name: &str) {
        let path = self.path(name);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    pub fn load(&self, name: &str) {
        self.load_build(name, "1", 0, "live");
    }

    /// Loads a module, of the version and the build BUILD.
    pub fn load_build(&self, name: &str, build: &str, references: u64, state: &str) {
        for (file, text) in [
            ("initstate", state),
            ("refcnt", &references.to_string()),
            ("version", build),
            ("srcversion", &format!("S{build}")),
            ("notes/.note.gnu.build-id", &format!("id-{name}-{build}")),
        ] {
            self.put(&format!("/sys/module/{name}/{file}"), &format!("{text}\n"));
        }
    }

    /// Loads the module of this project, which registers with the core.
    pub fn load_own(&self, name: &str, version: &str, references: u64) {
        self.load_build(name, version, references, "live");
        self.put(&format!("/sys/module/{name}/statistics/reachable_regions"), "0\n");
        self.put(&format!("/sys/module/ib_core/holders/{name}"), "");
    }

    /// Loads the RDMA core. The module EXPORTER takes clients; no module does if it is empty.
    pub fn load_core(&self, build: &str, exporter: &str) {
        for name in ["ib_core", "ib_uverbs"] {
            self.load_build(name, build, 0, "live");
        }
        let other = "0000000000000000 t x_ib_register_peer_memory_client\t[other]\n";
        let ours = format!("0000000000000000 T ib_register_peer_memory_client\t[{exporter}]\n");
        self.put("/proc/kallsyms", &format!("{other}{}", if exporter.is_empty() { "" } else { &ours }));
    }

    pub fn contain_driver(&self) {
        self.put(DRIVER_PID, "4711\n");
        self.put(&format!("{DRIVER}/usr/bin/nvidia-smi"), "");
        self.put(DRIVER_READY, "");
        self.load("nvidia_uvm");
    }

    pub fn contain_ofed(&self) {
        self.put(&format!("{OFED}/.lock"), "");
        self.put(OFED_READY, "");
    }
}
