// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! What the keeper does to the node. Tests have doubles of these functions.
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::build::{self, Built, Failed};
use crate::cache::Cache;
use crate::hooks::{self, HOOK};
use crate::kernel::{self, Refused};
use crate::node::Node;
use crate::places::{self, Missing, Places};
use crate::program::said;
use crate::report;
use crate::settings::RELEASE;
use crate::sign::{SECRET, Signer};

pub trait Actions {
    /// Returns the time of the kernel's clock.
    fn now(&self) -> Duration;
    /// Returns the directory in which modules are built. It is removed after each build.
    fn work(&self) -> PathBuf;
    fn find(&mut self, node: &Node, cache: &Cache) -> Result<Places, Missing>;
    fn build(&mut self, node: &Node, places: &Places, kernel: &str, name: &str, work: &Path) -> Result<Built, Failed>;
    /// Returns what signs modules, if something does, or why it cannot.
    fn signer(&mut self) -> Result<Option<Signer>, String>;
    fn load(&mut self, node: &Node, files: &[PathBuf], parameters: &[String]) -> Result<(), Refused>;
    fn unload(&mut self, node: &Node, name: &str) -> Result<(), Refused>;
    fn write_hook(&mut self, node: &Node) -> io::Result<bool>;
    /// Returns nvpm's advice about a module that could not be loaded.
    fn advice(&mut self, name: &str, refusal: &str) -> String;
}

/// The actions on this node. A build ends when the function says that this process is to end.
pub struct Here(pub fn() -> bool);

impl Actions for Here {
    fn now(&self) -> Duration {
        report::now()
    }

    fn work(&self) -> PathBuf {
        std::env::temp_dir().join("nv-peer-mem-build")
    }

    fn find(&mut self, node: &Node, cache: &Cache) -> Result<Places, Missing> {
        places::find(node, cache)
    }

    fn build(&mut self, _: &Node, places: &Places, kernel: &str, name: &str, work: &Path) -> Result<Built, Failed> {
        build::build(Path::new(RELEASE), places, kernel, name, work, self.0)
    }

    fn signer(&mut self) -> Result<Option<Signer>, String> {
        Signer::of(Path::new(SECRET))
    }

    fn load(&mut self, _: &Node, files: &[PathBuf], parameters: &[String]) -> Result<(), Refused> {
        kernel::load(files, parameters)
    }

    fn unload(&mut self, _: &Node, name: &str) -> Result<(), Refused> {
        kernel::unload(name)
    }

    fn write_hook(&mut self, node: &Node) -> io::Result<bool> {
        hooks::write(node, Path::new(HOOK))
    }

    fn advice(&mut self, name: &str, refusal: &str) -> String {
        said(&["nvpm", "advise", name, refusal], Stdio::null()).1.trim().to_owned()
    }
}
