// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! A machine that is made of files, with the doubles of programs that nvpm starts.
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::machine::Machine;

const TOOLS: [&str; 5] = ["modinfo", "mokutil", "ofed_info", "rpm", "systemctl"];

pub struct Node {
    directory: PathBuf,
    pub machine: Machine,
}

pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Node {
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("nvpm-node.{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("bin")).unwrap();
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/doubles/tool");
        for name in TOOLS {
            symlink(&tool, directory.join("bin").join(name)).unwrap();
        }
        let machine = Machine::new(&directory.join("machine"));
        Self { directory, machine }
    }

    /// Returns a directory for other files of the test.
    pub fn scratch(&self) -> &Path {
        &self.directory
    }

    pub fn change(&self, lines: &[&str]) {
        for line in lines {
            self.machine.change(line);
        }
    }

    /// Puts a program before the others in PATH.
    pub fn program(&self, name: &str, script: &str) {
        let path = self.directory.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the environment of commands: the machine, and the doubles of programs.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let path = format!("{}:{}", self.directory.join("bin").display(), std::env::var("PATH").unwrap());
        [("NVPM_SYSROOT", self.machine.root.clone().into()), ("PATH", path.into())]
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.envs(self.environment()).stdin(Stdio::null());
        command
    }

    pub fn nvpm(&self, words: &str) -> Ended {
        self.command().args(words.split_whitespace()).output().unwrap().into()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // What cannot be removed lies in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub fn program() -> OsString {
    std::env::var_os("NVPM_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_nvpm-bin").into())
}
