// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Sets the variables and options with which the module's own build compiles the module's files,
//! and compiles the C files of the module's own kernel crate for the host.

use std::{env, fs, process::Command};

/// Runs a command that must succeed.
fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn main() {
    // This version is longer than the core's field for versions.
    println!("cargo:rustc-env=NVPM_VERSION=1.2.3-for-tests");
    // The option selects the bindings that are kept in the tree.
    println!("cargo:rustc-cfg=nvpm_own_crate");
    let out = env::var("OUT_DIR").unwrap();
    for (source, name) in [
        ("../../src/kernel/kernel.c", "crate_c"),
        ("../doubles/kernel/crate/kernel.c", "host_c"),
    ] {
        let object = format!("{out}/{name}.o");
        run(Command::new("cc")
            .args([
                "-std=gnu11",
                "-O1",
                "-g",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-sign-compare",
                "-Wno-unused-parameter",
            ])
            .args([
                "-I../doubles/kernel/crate/include",
                "-iquote../doubles/kernel/crate/include/linux",
            ])
            .args(["-c", source, "-o", &object]));
        let archive = format!("{out}/lib{name}.a");
        // An earlier build may have left an archive with other members.
        let _ = fs::remove_file(&archive);
        run(Command::new("ar").args(["rcs", &archive, &object]));
    }
    println!("cargo:rustc-link-search=native={out}");
    for source in ["build.rs", "../doubles/kernel/crate", "../../src/kernel"] {
        println!("cargo:rerun-if-changed={source}");
    }
}
