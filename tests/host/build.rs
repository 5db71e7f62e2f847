// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Gives the module's files the version that their own build gives them, and compiles for the host
//! the C half of the module's own kernel crate.

use std::{env, fs, process::Command};

/// Runs a command that must succeed.
fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn main() {
    // Longer than the core has room for.
    println!("cargo:rustc-env=NVPM_VERSION=1.2.3-for-tests");
    // The bindings that were made before.
    println!("cargo:rustc-cfg=nvpm_own_crate");
    let out = env::var("OUT_DIR").unwrap();
    for (source, name) in [
        ("../../src/kernel/kernel.c", "crate_c"),
        ("kernel_crate/kernel.c", "host_c"),
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
                "-Ikernel_crate/include",
                "-iquotekernel_crate/include/linux",
            ])
            .args(["-c", source, "-o", &object]));
        let archive = format!("{out}/lib{name}.a");
        // It may be there from a build before, with other members.
        let _ = fs::remove_file(&archive);
        run(Command::new("ar").args(["rcs", &archive, &object]));
    }
    println!("cargo:rustc-link-search=native={out}");
    for source in ["build.rs", "kernel_crate", "../../src/kernel"] {
        println!("cargo:rerun-if-changed={source}");
    }
}
