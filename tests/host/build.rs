// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Gives the module's files the version that their own build gives them, and compiles for the host
//! what C is tested there: the half of the ground *free*, lists and tables.

use std::{env, fs, process::Command};

/// Runs a command that must succeed.
fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn main() {
    println!("cargo:rustc-env=NVPM_VERSION=host");
    let out = env::var("OUT_DIR").unwrap();
    for (source, name) in [
        ("../../src/rt/free.c", "free"),
        ("../../src/ids.c", "ids"),
        ("../../src/pairs.c", "pairs"),
        ("../../src/processes.c", "processes"),
        ("../../src/regions.c", "regions"),
        ("../../src/sglist.c", "sglist"),
        ("free/kernel.c", "kernel"),
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
                "-Ifree/include",
                "-iquotefree/include/linux",
                "-I../../src/abi/core",
                "-DNVPM_PEER_MEM=<rdma/peer_mem.h>",
            ])
            .args(["-c", source, "-o", &object]));
        let archive = format!("{out}/lib{name}.a");
        // It may be there from a build before, with other members.
        let _ = fs::remove_file(&archive);
        run(Command::new("ar").args(["rcs", &archive, &object]));
    }
    println!("cargo:rustc-link-search=native={out}");
    for source in [
        "build.rs",
        "free",
        "../../src/rt",
        "../../src/compat.h",
        "../../src/ids.c",
        "../../src/pairs.c",
        "../../src/processes.c",
        "../../src/regions.c",
        "../../src/sglist.c",
        "../../src/shim.h",
        "../../src/abi",
    ] {
        println!("cargo:rerun-if-changed={source}");
    }
}
