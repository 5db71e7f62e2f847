// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What `../build.rs` says to the module's files; and where libFuzzer is.

fn main() {
    println!("cargo:rustc-env=NVPM_VERSION=1.2.3-for-tests");
    for cfg in ["nvpm_own_crate", "nvpm_fuzz"] {
        println!("cargo:rustc-cfg={cfg}");
    }
    // It has its own `main`. Of C++ there is what programs run with.
    for argument in [
        "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a",
        "-l:libstdc++.so.6",
        "-lm",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
