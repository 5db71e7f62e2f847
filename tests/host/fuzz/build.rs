// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Gives the module's files the same settings as `../build.rs`, and links libFuzzer.

fn main() {
    println!("cargo:rustc-env=NVPM_VERSION=1.2.3-for-tests");
    for cfg in ["nvpm_own_crate", "nvpm_fuzz"] {
        println!("cargo:rustc-cfg={cfg}");
    }
    // libFuzzer's library contains `main`, and needs the C++ library. Debian's runtime file of the
    // C++ library is enough for linking.
    for argument in [
        "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a",
        "-l:libstdc++.so.6",
        "-lm",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
