// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Makes the directories that all cases use: the installed files, and the libraries for the selftest.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::player::Places;

/// A directory that is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let path = env::temp_dir().join(format!("nvpm-tables.{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed lies in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn make(scratch: &Path) -> Places {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (service, libraries) = (scratch.join("service"), scratch.join("libraries"));
    fs::create_dir(&service).unwrap();
    for file in fs::read_dir(top.join("init.d")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), service.join(file.file_name())).unwrap();
    }
    let program = env::var_os("NVPM_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_nvpm-bin").into());
    fs::copy(program, service.join("nvpm-bin")).unwrap();
    fs::create_dir(&libraries).unwrap();
    compile(top, &libraries);
    Places { tables: top.join("nvpm/tests/machines"), doubles: top.join("tests/doubles"), service, libraries }
}

/// Compiles the lab's libcuda, which needs no GPU in this form, and the double of libibverbs.
fn compile(top: &Path, libraries: &Path) {
    let cuda = top.join("tests/doubles/cuda");
    let sources = ["cuda.c", "vmm.c", "gpu_host.c"].map(|file| cuda.join(file));
    library(&libraries.join("libcuda.so.1"), &[format!("-I{}/include", cuda.display())], &sources);
    let warnings = ["-Wall", "-Wextra", "-Werror"].map(str::to_owned);
    library(&libraries.join("libibverbs.so.1"), &warnings, &[top.join("tests/doubles/verbs/ibverbs.c")]);
}

fn library(file: &Path, options: &[String], sources: &[PathBuf]) {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let name = file.file_name().unwrap().to_str().unwrap();
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", &format!("-Wl,-soname,{name}"), "-o"]).arg(file);
    let status = command.args(options).args(sources).arg("-ldl").status().expect("a C compiler");
    assert!(status.success(), "{name} does not compile");
}
