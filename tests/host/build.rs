// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Gives the module's files the version that their own build gives them.

fn main() {
    println!("cargo:rustc-env=NVPM_VERSION=host");
    println!("cargo:rerun-if-changed=build.rs");
}
